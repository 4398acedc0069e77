import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { EXIT } from "./report.ts";
import type { Terminal } from "./terminal.ts";

/** Runs a command line, without the program's own name. @returns the exit code. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  let code: number = EXIT.ok;
  const done = (result: number): void => {
    code = result;
  };
  const program = new Command("evenkeel")
    .description("Load balancer for LLM inference: sends each request where it is done soonest.")
    .version(packageVersion(), "--version", "Print the version.")
    .addHelpText("after", EXAMPLES);
  for (const create of await Promise.all(wantedBy(args))) program.addCommand(create(terminal, done));
  for (const command of [program, ...program.commands]) adapt(command, terminal);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return exitCodeOf(error);
  }
  return code;
}

type CreateCommand = (terminal: Terminal, done: (code: number) => void) => Command;

const COMMANDS: Readonly<Record<string, () => Promise<CreateCommand>>> = {
  serve: async () => (await import("./serve.ts")).serveCommand,
  check: async () => (await import("./check.ts")).checkCommand,
  explain: async () => (await import("./explain.ts")).explainCommand,
  endpoints: async () => (await import("./endpoints.ts")).endpointsCommand,
  key: async () => (await import("./key.ts")).keyCommand,
  engine: async () => (await import("./engine.ts")).engineCommand,
  demo: async () => (await import("./demo/command.ts")).demoCommand,
  simulate: async () => (await import("./simulate/command.ts")).simulateCommand,
};

/** The command that is named, so that a start reads no more code than it runs; all of them where none is. */
function wantedBy([name = ""]: readonly string[]): readonly Promise<CreateCommand>[] {
  const named = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return named === undefined ? Object.values(COMMANDS).map((load) => load()) : [named()];
}

const EXAMPLES = `
Examples:
  evenkeel serve --endpoint http://10.0.0.7:8000 --endpoint http://10.0.0.8:8000
  evenkeel check --config evenkeel.yaml
  evenkeel demo
  evenkeel simulate

evenkeel <command> --help shows the options of a command.`;

/** The longest flag with its value takes 43 columns: of a terminal with 80, this much is left for the text. */
const MIN_TEXT_COLUMNS = 35;

/** Messages and exits go through `terminal`, and a mistyped command line points to the help. */
function adapt(command: Command, terminal: Terminal): void {
  command
    .exitOverride()
    .helpOption("-h, --help", "Show this help.")
    .configureHelp({ helpWidth: terminal.columns, minWidthToWrap: MIN_TEXT_COLUMNS })
    .showHelpAfterError(`See ${helpOf(command)} for what there is.`)
    .configureOutput({
      writeOut: (output) => terminal.write(output),
      writeErr: (output) => terminal.writeError(output),
    });
}

function helpOf(command: Command): string {
  return command.parent === null ? "evenkeel --help" : `evenkeel ${command.name()} --help`;
}

/** Commander exits with 1 for a command line that it does not understand, which here means a failed start. */
function exitCodeOf({ exitCode }: CommanderError): number {
  return exitCode === 1 ? EXIT.usage : exitCode;
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}
