import { type ChildProcess, fork } from "node:child_process";
import { type Trial, type TrialResult, workloadKey } from "./trial.ts";

/** What a process is asked. */
export interface TrialOrder {
  readonly traces: string;
  readonly trial: Trial;
}

/** What it answers. */
export type TrialReply =
  | { readonly kind: "done"; readonly result: TrialResult }
  | { readonly kind: "failed"; readonly message: string };

/** A trial that waits for a process. */
interface Waiting {
  readonly trial: Trial;
  readonly resolve: (result: TrialResult) => void;
  readonly reject: (error: unknown) => void;
}

interface Worker {
  readonly child: ChildProcess;
  /** Of the workload that it has read; undefined: none yet. */
  key: string | undefined;
  isBusy: boolean;
}

/** Processes that run trials. Those that share a workload go to one process as far as there are others for the rest. */
export class TrialPool {
  readonly #traces: string;
  readonly #workers: readonly Worker[];
  readonly #waiting: Waiting[] = [];
  #isAssigning = false;

  constructor(traces: string, processes: number) {
    this.#traces = traces;
    this.#workers = Array.from({ length: processes }, () => ({
      child: fork(new URL("./trial-process.ts", import.meta.url)),
      key: undefined,
      isBusy: false,
    }));
  }

  run(trial: Trial): Promise<TrialResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ trial, resolve, reject });
      this.#assignSoon();
    });
  }

  close(): void {
    for (const { child } of this.#workers) child.kill();
  }

  /** Whoever has just got a result may want more of the same workload. */
  #assignSoon(): void {
    if (this.#isAssigning) return;
    this.#isAssigning = true;
    setImmediate(() => {
      this.#isAssigning = false;
      for (const worker of this.#workers) if (!worker.isBusy) this.#assign(worker);
    });
  }

  #assign(worker: Worker): void {
    const taken = new Set(this.#workers.map(({ key }) => key));
    const keyOf = ({ trial }: Waiting): string => workloadKey(trial);
    const next =
      this.#waiting.find((waiting) => keyOf(waiting) === worker.key) ??
      this.#waiting.find((waiting) => !taken.has(keyOf(waiting))) ??
      this.#waiting[0];
    if (next === undefined) return;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    worker.key = keyOf(next);
    worker.isBusy = true;
    this.#order(worker, next);
  }

  #order(worker: Worker, { trial, resolve, reject }: Waiting): void {
    const { child } = worker;
    child.once("message", (reply: TrialReply) => {
      child.removeAllListeners("exit");
      worker.isBusy = false;
      if (reply.kind === "done") resolve(reply.result);
      else reject(new Error(reply.message));
      this.#assignSoon();
    });
    child.once("exit", (code, signal) => reject(new Error(`a simulation ended with ${signal ?? `code ${code}`}`)));
    child.send({ traces: this.#traces, trial } satisfies TrialOrder);
  }
}
