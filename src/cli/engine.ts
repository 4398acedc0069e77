import { Command } from "commander";
import { readSettings, settingsOf } from "../config/index.ts";
import { type EngineSettings, engineOptions, serveEngine } from "../engine/index.ts";
import { EXIT, reportProblems } from "./report.ts";
import { addSettingFlags, givenFlags } from "./setting-flags.ts";
import { startFailure } from "./start-failure.ts";
import type { Terminal } from "./terminal.ts";

const VARIABLES = "EVENKEEL_ENGINE";
const settings = settingsOf(engineOptions, VARIABLES);

/** `evenkeel engine`: the built-in engine, until it is told to stop. @param done Takes the exit code. */
export function engineCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command = new Command("engine")
    .summary("run the built-in engine, which behaves in time like a real one")
    .description(
      "Runs an OpenAI-compatible server that answers with made-up text at the pace of a real engine: continuous batching, prefix cache, KV limit. For trying out, tests and benchmarks; needs no GPU.",
    )
    .addHelpText("after", EXAMPLES);
  addSettingFlags(command, settings);
  command.action(async () => {
    const sources = { environment: terminal.environment, flags: givenFlags(command, settings) };
    const checked = readSettings(engineOptions, sources, VARIABLES);
    if (checked.ok) return done(await run(checked.value, terminal));
    reportProblems(checked.problems, terminal);
    done(EXIT.failed);
  });
  return command;
}

const EXAMPLES = `
Every option is also a variable: --kv-tokens is EVENKEEL_ENGINE_KV_TOKENS.

Examples:
  evenkeel engine
  evenkeel engine --listen 127.0.0.1:8001 --model demo --speed 0.5`;

async function run(options: EngineSettings, terminal: Terminal): Promise<number> {
  const stopped = terminal.untilStopped();
  const engine = serveEngine(options);
  try {
    const { url } = await engine.listen();
    terminal.write(`engine for ${options.model} on ${url} (${options.profile}, speed ${options.speed})\n`);
  } catch (error) {
    terminal.writeError(`error: ${startFailure(error)}\n`);
    return EXIT.failed;
  }
  await stopped;
  await engine.close();
  return EXIT.ok;
}
