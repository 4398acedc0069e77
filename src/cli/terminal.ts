import { text } from "node:stream/consumers";
import type { Environment } from "../config/index.ts";

/** What a command needs of the process it runs in; tests give it another. */
export interface Terminal {
  readonly environment: Environment;
  /** Width that text is wrapped to. */
  readonly columns: number;
  /** Results: what may be piped on. */
  write(text: string): void;
  /** Messages to the person in front of it. */
  writeError(text: string): void;
  /** Standard input to its end. */
  readInput(): Promise<string>;
  /** Resolves when the process is first asked to stop; from then on a second signal ends it at once. */
  untilStopped(): Promise<void>;
  /** From now on SIGHUP, which would end the process, calls `listener` instead. */
  onHangUp(listener: () => void): void;
}

/** Longer lines are hard to read. */
const MAX_COLUMNS = 110;

/** The terminal of this process. */
export function processTerminal(): Terminal {
  process.stdout.on("error", ignoreBrokenPipe);
  return {
    environment: process.env,
    columns: Math.min(process.stdout.columns ?? MAX_COLUMNS, MAX_COLUMNS),
    write: (output) => void process.stdout.write(output),
    writeError: (output) => void process.stderr.write(output),
    readInput: () => text(process.stdin),
    untilStopped,
    onHangUp: (listener) => void process.on("SIGHUP", listener),
  };
}

/** Whoever read the output, `head` for one, has enough of it. That is no fault, and no reason to stop serving. */
function ignoreBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}

const STOP_SIGNALS = ["SIGINT", "SIGTERM"] as const;

function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false;
    for (const signal of STOP_SIGNALS) {
      process.on(signal, () => {
        if (isStopping) endBy(signal);
        isStopping = true;
        resolve();
      });
    }
  });
}

/**
 * Ends the process at once, as the signal would have without us. `process.exit` joins V8's threads first, and was seen
 * to wait for ever on one that compiled WebAssembly (undici's HTTP parser) in the first moments of a process.
 */
function endBy(signal: (typeof STOP_SIGNALS)[number]): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
