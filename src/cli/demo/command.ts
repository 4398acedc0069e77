import { Command, InvalidArgumentError, Option } from "commander";
import { policyDefinitions } from "../../core/index.ts";
import { EXIT } from "../report.ts";
import { startFailure } from "../start-failure.ts";
import type { Terminal } from "../terminal.ts";
import { type DemoOptions, runDemo } from "./demo.ts";

/** `evenkeel demo`: a fleet, a balancer and traffic in one process, drawn live. @param done Takes the exit code. */
export function demoCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command = new Command("demo")
    .summary("watch four engines of unequal speed being balanced")
    .description(
      "Starts four built-in engines of unequal speed and a balancer in front of them, sends traffic, and shows live which endpoint gets what and why.",
    )
    .addOption(
      new Option("--policy <name>", "Policy to watch.")
        .choices(policyDefinitions.map(({ name }) => name))
        .default("least_delay"),
    )
    .option("--listen <host:port>", "Where the balancer listens.", "127.0.0.1:8080")
    .option("--rate <number>", "Requests per second.", positive, 15)
    .option("--seconds <number>", "How long to run; left out: until it is interrupted.", positive);
  command.action(async () => {
    const { policy, listen, rate, seconds } = command.opts<{
      policy: string;
      listen: string;
      rate: number;
      seconds?: number;
    }>();
    done(await demo({ policy, listen, requestsPerSecond: rate, seconds }, terminal));
  });
  return command;
}

async function demo(options: DemoOptions, terminal: Terminal): Promise<number> {
  const stopped = new AbortController();
  void terminal.untilStopped().then(() => stopped.abort());
  try {
    const screen = { isLive: process.stdout.isTTY === true, write: (text: string) => terminal.write(text) };
    await runDemo(options, screen, stopped.signal);
    return EXIT.ok;
  } catch (error) {
    terminal.writeError(`error: ${startFailure(error)}\n`);
    return EXIT.failed;
  }
}

function positive(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError("Expected a number above 0.");
}
