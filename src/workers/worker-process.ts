import cluster, { type Worker } from "node:cluster";
import { fileURLToPath } from "node:url";
import { type ExchangePort, ipcPort } from "../runtime/index.ts";
import type { Answers, CommonState, FromWorker, Question, RemoteRecord, ToWorker } from "./messages.ts";
import { listenErrorOf } from "./start-failure.ts";

/** A worker is gone, or does not answer; the message says which. */
export class WorkerError extends Error {}

/** What a worker needs of the primary. */
export interface WorkerEvents {
  /** What all workers have in common by now. */
  readonly state: () => CommonState;
  /** Takes what it wants recorded. */
  readonly recorded: (record: RemoteRecord) => void;
}

/** One worker as the primary sees it: a process from its fork to its end. */
export class WorkerProcess {
  /** Its place among the workers, from 1; one that takes the place of another has its number. */
  readonly number: number;
  /** Its end of the channel over which workers exchange their work. */
  readonly port: ExchangePort;
  /** Where it listens. Rejects with the error of a process that listens by itself, or a `WorkerError`. */
  readonly started: Promise<string>;
  /** How it ended, in words. */
  readonly ended: Promise<string>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #startedWith: CommonState | undefined;
  #asked = 0;

  /** @param events What it asks for, and who takes what it says. */
  constructor(number: number, events: WorkerEvents) {
    this.number = number;
    const worker = forkWorker(number);
    this.#worker = worker;
    this.port = ipcPort(worker.process);
    this.ended = new Promise((resolve) => {
      worker.once("exit", (code: number | null, signal: string | null) => resolve(signal ?? `exit code ${code}`));
    });
    this.started = new Promise((resolve, reject) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "awake") this.#start(events.state());
        else if (message.kind === "started") resolve(message.listenUrl);
        else if (message.kind === "failed") reject(listenErrorOf(message.failure));
        else if (message.kind === "record") events.recorded(message.record);
        else if (message.kind === "answer") this.#take(message.id)?.resolve(message.answer);
        else if (message.kind === "unanswered") this.#take(message.id)?.reject(new Error(message.message));
      });
      void this.ended.then((how) => {
        reject(new WorkerError(`worker ${number} ended before it served: ${how}`));
        for (const id of this.#waiting.keys()) this.#take(id)?.reject(new WorkerError(`worker ${number} is gone`));
      });
    });
    // Whoever waits for its start hears of a failure; nobody has to.
    this.started.catch(() => {});
    // What cannot be sent to it is made good by its end, which follows.
    worker.on("error", () => {});
  }

  /** Undefined: it was not told to start yet. */
  get startedWith(): CommonState | undefined {
    return this.#startedWith;
  }

  get isAlive(): boolean {
    return !this.#worker.isDead();
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  /** Rejects with a `WorkerError` when it is gone, or has not answered in time. */
  ask<Asked extends Question>(question: Asked): Promise<Answers[Asked["kind"]]> {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      const late = new WorkerError(`worker ${this.number} does not answer`);
      const timer = setTimeout(() => this.#take(id)?.reject(late), ANSWER_MS);
      this.#waiting.set(id, { resolve: resolve as Waiting["resolve"], reject, timer });
      if (!this.isAlive) this.#take(id)?.reject(new WorkerError(`worker ${this.number} is gone`));
      else this.#say({ kind: "ask", id, question });
    });
  }

  /** It accepts nothing more, lets what runs finish within the drain limit, and ends. */
  drain(): void {
    // One that does not hear yet serves nobody.
    if (this.#startedWith === undefined) this.kill();
    else this.#say({ kind: "drain" });
  }

  /** It ends at once, whatever it is at. */
  kill(): void {
    this.#worker.process.kill("SIGKILL");
  }

  #start(state: CommonState): void {
    this.#startedWith = state;
    this.#say({ kind: "start", number: this.number, state });
  }

  #say(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.send(message);
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(id);
    return waiting;
  }
}

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Longer than a worker stands still over the largest body, shorter than whoever asks waits for an answer. */
const ANSWER_MS = 5_000;

/** Beside this file, and compiled where this one is. */
const ENTRY: string = fileURLToPath(new URL("./worker-main.ts", import.meta.url)).replace(
  /\.ts$/,
  import.meta.url.endsWith(".js") ? ".js" : ".ts",
);

function forkWorker(number: number): Worker {
  // The primary accepts, and deals connections out in turn: where all accept, chance deals them (docs/workers.md).
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: ENTRY, args: [String(number)], serialization: "advanced" });
  return cluster.fork();
}
