/** What a command line came to. */
export interface CommandOutcome {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** What its terminal has to offer besides a screen of 80 columns. */
export interface Given {
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** A terminal that is never told to stop. */
interface QuietTerminal {
  readonly environment: Readonly<Record<string, string>>;
  readonly columns: number;
  write(text: string): void;
  writeError(text: string): void;
  readInput(): Promise<string>;
  untilStopped(): Promise<void>;
  onHangUp(): void;
}

type Run = (args: readonly string[], terminal: QuietTerminal) => Promise<number>;

/** Runs command lines in this process. @param run The program. */
export function commandLine(run: Run): (args: readonly string[], given?: Given) => Promise<CommandOutcome> {
  return async (args, { environment = {}, input = "" } = {}) => {
    let output = "";
    let errors = "";
    const code = await run(args, {
      environment,
      columns: 80,
      write: (text) => {
        output += text;
      },
      writeError: (text) => {
        errors += text;
      },
      readInput: async () => input,
      untilStopped: async () => {},
      onHangUp: () => {},
    });
    return { code, output, errors };
  };
}
