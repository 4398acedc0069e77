import cluster from "node:cluster";
import { pack, unpack } from "../config/index.ts";
import { type RunningServer, startServer } from "../gateway/index.ts";
import { createLog, ipcPort, monotonicClock, ProcessExchange } from "../runtime/index.ts";
import type { Answers, CommonState, FromWorker, Question, ToWorker } from "./messages.ts";
import { nodeName } from "./node-name.ts";
import { RemoteRecorder } from "./remote-recorder.ts";
import { shareOf } from "./share-of.ts";
import { startFailureOf } from "./start-failure.ts";

/** The life of a worker process: it serves as its primary says, and ends with it. */
export function runWorker(): void {
  const worker = new Worker();
  // They come to the whole group of processes, from a terminal or a service manager; the primary acts on them for all.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  process.on("message", (message: ToWorker) => worker.hear(message));
  // Before what the cluster module does then: it would wait for V8's threads, which was seen to take for ever.
  process.prependListener("disconnect", () => {
    if (!worker.isDone) process.kill(process.pid, "SIGKILL");
  });
  say({ kind: "awake" });
}

class Worker {
  #server: Promise<RunningServer> | undefined;
  #isDone = false;

  /** It has served what there was to serve. */
  get isDone(): boolean {
    return this.#isDone;
  }

  hear(message: ToWorker): void {
    switch (message.kind) {
      case "start":
        void this.#start(message.number, message.state);
        break;
      case "ask":
        void this.#answer(message.id, message.question);
        break;
      case "drain":
        void this.#drain();
    }
  }

  async #start(number: number, { config, changes }: CommonState): Promise<void> {
    const whole = unpack(config);
    const log = createLog(whole.log).child({ worker: number });
    const exchange = new ProcessExchange(nodeName(number), ipcPort(process));
    this.#server = startServer(shareOf(whole), { log, exchange, recorder: new RemoteRecorder(monotonicClock) });
    try {
      const { runtime, listenUrl } = await this.#server;
      runtime.takeOperatorChanges(unpack(changes));
      say({ kind: "started", listenUrl });
    } catch (error) {
      const failure = startFailureOf(error);
      if (failure === undefined) throw error;
      say({ kind: "failed", failure });
    }
  }

  async #answer(id: number, question: Question): Promise<void> {
    const server = await (this.#server as Promise<RunningServer>);
    try {
      say({ kind: "answer", id, answer: await ANSWERS[question.kind](server, question as never) });
    } catch (error) {
      say({ kind: "unanswered", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }

  async #drain(): Promise<void> {
    await this.#server?.then(
      (server) => server.close(),
      () => undefined,
    );
    this.#isDone = true;
    cluster.worker?.disconnect();
  }
}

type Answer<Kind extends Question["kind"]> = (
  server: RunningServer,
  question: Extract<Question, { readonly kind: Kind }>,
) => Answers[Kind] | Promise<Answers[Kind]>;

const ANSWERS: { readonly [Kind in Question["kind"]]: Answer<Kind> } = {
  admin: ({ desk }, { asked }) => desk.answer(asked),
  change: async ({ desk, runtime }, { asked }) => {
    const answer = await desk.answer(asked);
    return { answer, changes: pack(runtime.operatorChanges) };
  },
  changed: ({ desk, runtime }, { asked, state }) => {
    take(runtime, state);
    return desk.shown(asked);
  },
  take: ({ runtime }, { state }) => {
    take(runtime, state);
    return pack(runtime.operatorChanges);
  },
  metrics: ({ desk }) => desk.metrics(),
  keysOutstanding: ({ desk }) => desk.keysOutstanding,
  keysUsed: ({ desk }, { uses }) => desk.keysUsed(uses) as undefined,
};

/** A worker that cannot is of no use to the others: it ends, and one that begins anew begins with it. */
function take(runtime: RunningServer["runtime"], { config, changes }: CommonState): void {
  try {
    runtime.reconfigure(shareOf(unpack(config)));
    runtime.takeOperatorChanges(unpack(changes));
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}

function say(message: FromWorker): void {
  // What cannot be sent has nobody to hear it: the primary is gone, and `disconnect` is about to come.
  process.send?.(message, undefined, undefined, () => {});
}
