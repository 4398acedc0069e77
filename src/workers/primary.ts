import type { Server } from "node:http";
import type { Config } from "../config/index.ts";
import { closeNow, createAdminServer, listenOn } from "../gateway/index.ts";
import {
  type Clock,
  type ConfigSource,
  createLog,
  ExchangeRelay,
  type Log,
  monotonicClock,
  Recorder,
  Reloader,
} from "../runtime/index.ts";
import { Common } from "./common.ts";
import type { RemoteRecord } from "./messages.ts";
import { MetricsTogether } from "./metrics-together.ts";
import { nodeName } from "./node-name.ts";
import { performTogether } from "./perform-together.ts";
import { Supervisor } from "./supervisor.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Worker processes that serve as one balancer. */
export interface RunningWorkers {
  /** Where clients connect, with the port that was really taken. */
  readonly listenUrl: string;
  /** Undefined: the admin listener is off. */
  readonly adminUrl: string | undefined;
  readonly log: Log;
  readonly reloader: Reloader;
  /** As `RunningServer.close`, for all of them. May be called twice. */
  close(): Promise<void>;
}

/**
 * Starts as many workers as are configured and serves the admin listener for all of them. Resolves when each serves.
 * @throws what `startServer` throws; then nothing is left running.
 */
export async function startWorkers(config: Config, source?: ConfigSource): Promise<RunningWorkers> {
  return new Primary(config, source, monotonicClock).start();
}

/** The process that clients never talk to: it keeps the workers, what they have in common, and who asks for all of them. */
class Primary {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #common: Common;
  readonly #reloader: Reloader;
  readonly #relay = new ExchangeRelay();
  readonly #metrics: MetricsTogether;
  readonly #supervisor: Supervisor<WorkerProcess>;
  readonly #admin: Server | undefined;
  #recorder: Recorder | undefined;
  #closing: Promise<void> | undefined;

  constructor(config: Config, source: ConfigSource | undefined, clock: Clock) {
    const log = createLog(config.log);
    const serving = (): readonly WorkerProcess[] => this.#supervisor.serving;
    const common = new Common(config, serving);
    const reloader = new Reloader(source, (other) => common.reconfigure(other), { clock, log });
    const metrics = new MetricsTogether({
      reloader,
      serving: () => serving().length,
      deaths: () => this.#supervisor.deaths,
    });
    this.#log = log;
    this.#clock = clock;
    this.#common = common;
    this.#reloader = reloader;
    this.#metrics = metrics;
    this.#supervisor = new Supervisor({
      count: config.workers,
      clock,
      log,
      fork: (number) => this.#fork(number),
      joins: (worker, serves) => common.joins(worker, serves),
      left: (worker) => this.#left(worker),
    });
    const host = {
      log,
      configured: common.configured,
      get config() {
        return common.config;
      },
    };
    this.#admin =
      config.admin === undefined
        ? undefined
        : createAdminServer(host, performTogether({ serving, common, reloader, metrics }));
  }

  async start(): Promise<RunningWorkers> {
    const { recording, admin } = this.#common.config;
    try {
      const listenUrl = await this.#supervisor.start();
      const adminUrl =
        this.#admin === undefined || admin === undefined ? undefined : `http://${await listenOn(this.#admin, admin)}`;
      // Last of all: whoever has the addresses may have the file as well.
      if (recording !== undefined) this.#recorder = new Recorder(recording, this.#clock, this.#log);
      this.#reloader.start();
      return { listenUrl, adminUrl, log: this.#log, reloader: this.#reloader, close: () => this.close() };
    } catch (error) {
      await Promise.all([this.#supervisor.kill(), closeNow(this.#admin)]);
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#reloader.stop();
    const { drainMs } = this.#common.config.timeouts;
    await this.#supervisor.drain(drainMs === undefined ? undefined : drainMs + GRACE_MS);
    await this.#recorder?.close();
    await closeNow(this.#admin);
  }

  #fork(number: number): WorkerProcess {
    const worker = new WorkerProcess(number, {
      state: () => this.#common.state,
      recorded: (record) => this.#record(record),
    });
    this.#relay.attach(nodeName(number), worker.port);
    return worker;
  }

  #left(worker: WorkerProcess): void {
    this.#relay.detach(nodeName(worker.number));
    this.#metrics.left(worker);
  }

  #record({ request, arrivedAgoMs, sizes }: RemoteRecord): void {
    this.#recorder?.record(request, this.#clock.nowMs() - arrivedAgoMs, sizes);
  }
}

/** Beyond the drain limit, by which workers end by themselves. */
const GRACE_MS = 5_000;
