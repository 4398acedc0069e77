import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** How a program is started. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What a program gets to leave after SIGTERM before it is killed. */
const GRACE_MS = 10_000;
/** Lines of its output that a failure shows. */
const SHOWN_LINES = 8;

/** A program of a benchmark, its output in a file; whoever starts it stops it. */
export class ManagedProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #logFile: string;
  readonly #exited: Promise<void>;
  #startError: string | undefined;

  constructor(name: string, command: Command, directory: string) {
    this.name = name;
    this.#logFile = join(directory, `${name}.log`);
    const log = openSync(this.#logFile, "w");
    this.#child = spawn(command.file, command.args, {
      stdio: ["ignore", log, log],
      env: { ...process.env, ...command.env },
    });
    closeSync(log);
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.once("error", (error) => {
        this.#startError = error.message;
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get isRunning(): boolean {
    return this.#startError === undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** @throws with the end of its output when the program has ended. */
  assertRunning(): void {
    if (!this.isRunning) throw new Error(`${this.name} has ended: ${this.lastLines()}`);
  }

  /** Resolves once `isReady` says so; asks every few milliseconds. @throws when the program ends or time is up. */
  async waitUntil(isReady: () => Promise<boolean>, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      this.assertRunning();
      if (await isReady()) return;
      if (performance.now() > deadline) {
        throw new Error(`${this.name} was not ready after ${timeoutMs / 1000} s: ${this.lastLines()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Lets the program finish, or kills it when it does not. May be called twice. */
  async stop(): Promise<void> {
    if (this.isRunning) {
      this.#child.kill("SIGTERM");
      const killer = setTimeout(() => this.#child.kill("SIGKILL"), GRACE_MS);
      await this.#exited;
      clearTimeout(killer);
    }
    await this.#exited;
  }

  /** The end of what it wrote. */
  lastLines(): string {
    if (this.#startError !== undefined) return this.#startError;
    const lines = readFileSync(this.#logFile, "utf8").trim().split("\n");
    return lines.slice(-SHOWN_LINES).join("\n") || "no output";
  }
}

/** Runs a program to its end. @returns its standard output. @throws with its error output when it fails. */
export async function runToEnd(command: Command): Promise<string> {
  const child = spawn(command.file, command.args, { env: { ...process.env, ...command.env } });
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on("data", (part: Buffer) => output.push(part));
  child.stderr.on("data", (part: Buffer) => errors.push(part));
  const [code] = await once(child, "close");
  if (code === 0) return Buffer.concat(output).toString();
  const told = Buffer.concat(errors).toString().trim().split("\n").slice(-SHOWN_LINES).join("\n");
  throw new Error(`${command.file} ${command.args.join(" ")} ended with code ${code}: ${told}`);
}
