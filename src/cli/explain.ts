import { readFile } from "node:fs/promises";
import { Command } from "commander";
import type { Config } from "../config/index.ts";
import { Access, type ExplainAnswer, type ExplainQuestion, explainRequest, senderReaders } from "../gateway/index.ts";
import { createLog, Runtime } from "../runtime/index.ts";
import { askBalancer } from "./ask-balancer.ts";
import { addConfigOptions, readConfigOptions } from "./config-options.ts";
import { formatExplanation } from "./explanation.ts";
import { EXIT, reportProblems } from "./report.ts";
import type { Terminal } from "./terminal.ts";

/** What bears on a choice; addresses, limits and logs do not. */
const EXPLAINED_FLAGS: ReadonlySet<string> = new Set([
  "--endpoint",
  "--model",
  "--policy",
  "--session-key",
  "--tenant-key",
]);

interface ExplainOptions {
  readonly admin?: string;
  readonly path: string;
  readonly header?: readonly string[];
  readonly json?: true;
}

/** `evenkeel explain`: which endpoint a request would go to, and why. @param done Takes the exit code. */
export function explainCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command = new Command("explain")
    .summary("show which endpoint a request would go to, and why")
    .description(
      "Shows which endpoint a request would go to, candidate by candidate. With --admin, a running balancer answers from all it knows at this moment; without, the answer is that of a balancer which has just started.",
    )
    .argument("[body]", "file with the JSON body of the request; standard input unless given")
    .option("--admin <url>", "Ask the balancer with this admin address, such as http://127.0.0.1:9090.")
    .option("--path <path>", "Path the request is sent to.", "/v1/chat/completions")
    .option("-H, --header <name:value>", "Header of the request. May be repeated.", collect)
    .option("--json", "Print one JSON object.")
    .addHelpText("after", EXAMPLES);
  addConfigOptions(command, ({ flag }) => EXPLAINED_FLAGS.has(flag));
  command.action(async (file?: string) => done(await explain(command, file, terminal)));
  return command;
}

const EXAMPLES = `
Examples:
  evenkeel explain --admin http://127.0.0.1:9090 request.json
  echo '{"model":"m","messages":[{"role":"user","content":"Hi"}]}' | evenkeel explain --config evenkeel.yaml`;

async function explain(command: Command, file: string | undefined, terminal: Terminal): Promise<number> {
  const { admin, json: asJson, path, header = [] } = command.opts<ExplainOptions>();
  const config = admin === undefined ? readConfigOptions(command, terminal) : undefined;
  if (config !== undefined && !config.ok) {
    reportProblems(config.problems, terminal);
    return EXIT.failed;
  }
  const headers = headersOf(header);
  if (typeof headers === "string") command.error(`error: ${headers}`, { exitCode: EXIT.usage });
  const body = await readBody(file, terminal);
  if (body === undefined) command.error(`error: cannot read ${file}`, { exitCode: EXIT.usage });
  const question = { path, headers, body: Buffer.from(body) };
  const answer =
    config === undefined ? await askBalancer(admin ?? "", question, terminal) : explainIdle(config.value, question);
  if (typeof answer === "string") {
    terminal.writeError(`error: ${answer}\n`);
    return EXIT.failed;
  }
  terminal.write(asJson ? `${JSON.stringify(answer, null, 2)}\n` : formatExplanation(answer));
  return EXIT.ok;
}

/** The answer of a balancer that has just started: its endpoints are idle, nothing is learned. */
function explainIdle(config: Config, question: ExplainQuestion): ExplainAnswer | string {
  const runtime = new Runtime(config, { log: createLog({ level: "silent", format: "json" }) });
  const access = new Access(config.keys, runtime.clock);
  return explainRequest({ runtime, access, senders: senderReaders(config) }, question);
}

/** Undefined: there is no such file, or it may not be read. */
async function readBody(file: string | undefined, terminal: Terminal): Promise<string | undefined> {
  if (file === undefined || file === "-") return await terminal.readInput();
  return await readFile(file, "utf8").catch(() => undefined);
}

function collect(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

/** Names in lower case; a sentence for one that has no colon. */
function headersOf(lines: readonly string[]): Readonly<Record<string, string>> | string {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) return `--header expects name:value, such as 'x-session-id: 42'`;
    headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}
