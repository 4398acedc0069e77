import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";

/** A program under test, in a process of its own. */
export class Child {
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;
  #log = "";

  constructor(command: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.#process = spawn(command, args, {
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process.stdout?.on("data", (chunk) => this.#keep(chunk));
    this.#process.stderr?.on("data", (chunk) => this.#keep(chunk));
    // A run that is cut short must not leave engines behind.
    const endWithUs = (): void => void this.#process.kill("SIGKILL");
    process.once("exit", endWithUs);
    this.#exited = new Promise<void>((resolve) => {
      this.#process.once("exit", () => resolve());
      this.#process.once("error", (error) => {
        this.#keep(String(error));
        resolve();
      });
    }).then(() => void process.off("exit", endWithUs));
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#process.pid !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** What it wrote so far, on either output. */
  get log(): string {
    return this.#log;
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  /** Waits until it has ended by itself or by a signal. */
  exited(): Promise<void> {
    return this.#exited;
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#exited;
  }

  /** Waits until `url` answers 200. @throws when the program ends before. */
  async answersAt(url: string): Promise<void> {
    while (this.isRunning) {
      if (await isWell(url)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${this.#process.spawnfile} ended before ${url} answered:\n${this.#log}`);
  }

  /** Waits until it has written `text`. @throws when the program ends before. */
  async says(text: string): Promise<void> {
    while (this.isRunning) {
      if (this.#log.includes(text)) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${this.#process.spawnfile} ended without saying ${text}:\n${this.#log}`);
  }

  #keep(chunk: Buffer | string): void {
    this.#log += chunk.toString();
  }
}

async function isWell(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}

/**
 * A port that is free: engines want theirs named, and keep it over a restart. Below the range from which systems take
 * ports for outgoing connections and for port 0, so that nothing else comes upon it before the engine does.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    if (await isFree(port)) return port;
  }
}

const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
