import { type ChildProcess, fork } from "node:child_process";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Simulation } from "../../sim/index.ts";
import type { Runner } from "./runner.ts";
import type { RunSettings, RunSpec } from "./settings.ts";

/** Runs simulations; as many at the same time as it has processes, the others wait. */
export interface RunPool {
  /** @param onProgress Told now and then which share of the run is done, 0 to 1. */
  run(spec: RunSpec, onProgress: (share: number) => void): Promise<Simulation>;
  /** May be called twice. Runs that have not ended do not. */
  close(): Promise<void>;
}

/** What a process is asked. */
export interface RunOrder {
  /** The same for all orders of one process. */
  readonly settings: RunSettings;
  readonly spec: RunSpec;
}

/** What it answers: how far it is, and once either what came out or what went wrong. */
export type RunReply =
  | { readonly kind: "progress"; readonly share: number }
  | { readonly kind: "done"; readonly simulation: Simulation }
  | { readonly kind: "failed"; readonly message: string };

/** A pool of `processes`; where it is one, it is this one, with what `runner` has read already. */
export function createRunPool(settings: RunSettings, runner: Runner, processes: number): RunPool {
  return processes > 1 ? new ProcessPool(settings, processes) : new InlinePool(runner);
}

class InlinePool implements RunPool {
  readonly #runner: Runner;
  #last: Promise<unknown> = Promise.resolve();

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  run(spec: RunSpec, onProgress: (share: number) => void): Promise<Simulation> {
    const next = this.#last.then(async () => {
      // Between runs, whatever else the process has to do.
      await setImmediate();
      return this.#runner.run(spec, onProgress);
    });
    this.#last = next.catch(() => undefined);
    return next;
  }

  async close(): Promise<void> {}
}

interface Waiting {
  readonly spec: RunSpec;
  readonly onProgress: (share: number) => void;
  readonly resolve: (simulation: Simulation) => void;
  readonly reject: (error: unknown) => void;
}

class ProcessPool implements RunPool {
  readonly #settings: RunSettings;
  readonly #limit: number;
  readonly #children: ChildProcess[] = [];
  readonly #idle: ChildProcess[] = [];
  readonly #waiting: Waiting[] = [];

  constructor(settings: RunSettings, limit: number) {
    this.#settings = settings;
    this.#limit = limit;
  }

  run(spec: RunSpec, onProgress: (share: number) => void): Promise<Simulation> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ spec, onProgress, resolve, reject });
      this.#assign();
    });
  }

  async close(): Promise<void> {
    for (const child of this.#children.splice(0)) child.kill();
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      const child = this.#idle.pop() ?? this.#start();
      if (child === undefined) return;
      this.#order(child, this.#waiting.shift() as Waiting);
    }
  }

  /** Undefined: there are as many as there may be. */
  #start(): ChildProcess | undefined {
    if (this.#children.length >= this.#limit) return undefined;
    const child = fork(RUN_PROCESS, { serialization: "advanced" });
    this.#children.push(child);
    return child;
  }

  #order(child: ChildProcess, { spec, onProgress, resolve, reject }: Waiting): void {
    const finish = (settle: () => void) => {
      child.removeAllListeners("message").removeAllListeners("exit");
      this.#idle.push(child);
      settle();
      this.#assign();
    };
    child.on("message", (reply: RunReply) => {
      if (reply.kind === "progress") onProgress(reply.share);
      else if (reply.kind === "done") finish(() => resolve(reply.simulation));
      else finish(() => reject(new Error(reply.message)));
    });
    child.on("exit", (code, signal) => reject(new Error(`a simulation ended with ${signal ?? `code ${code}`}`)));
    child.send({ settings: this.#settings, spec } satisfies RunOrder);
  }
}

/** Beside this file, and compiled where this one is. */
const RUN_PROCESS: string = fileURLToPath(new URL("./run-process.ts", import.meta.url)).replace(
  /\.ts$/,
  import.meta.url.endsWith(".js") ? ".js" : ".ts",
);
