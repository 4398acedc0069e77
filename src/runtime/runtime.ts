import type { Config } from "../config/index.ts";
import { type Random, seededRandom } from "../core/index.ts";
import { type Clock, monotonicClock } from "./clock.ts";
import { createLog, type Log } from "./log.ts";
import { ModelDirectory } from "./model-directory.ts";
import { Recorder } from "./recorder.ts";
import { ServedPool } from "./served-pool.ts";

/** What a test replaces; each default is the real thing. */
export interface RuntimeParts {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

/** The one composition root: everything that lives as long as the process, wired once. */
export class Runtime {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly pools: readonly ServedPool[];
  readonly directory: ModelDirectory;
  #ticker: NodeJS.Timeout | undefined;
  #recorder: Recorder | undefined;
  #isDraining = false;

  constructor(config: Config, parts: RuntimeParts = {}) {
    this.config = config;
    this.clock = parts.clock ?? monotonicClock;
    this.log = parts.log ?? createLog(config.log);
    const surroundings = {
      clock: this.clock,
      random: parts.random ?? seededRandom(entropy()),
      log: this.log,
      health: config.health,
      modelsChanged: () => this.directory.refresh(),
    };
    this.pools = config.pools.map((pool) => new ServedPool(pool, surroundings));
    this.directory = new ModelDirectory(this.pools);
  }

  /** The process is about to end: whoever sends requests is told to send no more. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** New requests may come: each pool has an endpoint that was found well. */
  get isReady(): boolean {
    return !this.#isDraining && this.pools.every((pool) => pool.isReady);
  }

  /** Undefined: nothing is recorded. */
  get recorder(): Recorder | undefined {
    return this.#recorder;
  }

  /** @throws RecordingError when requests are to be recorded and cannot be. */
  start(): void {
    const { recording } = this.config;
    if (recording !== undefined) this.#recorder = new Recorder(recording, this.clock, this.log);
    for (const pool of this.pools) pool.start();
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
    this.#ticker.unref();
  }

  drain(): void {
    this.#isDraining = true;
  }

  async close(): Promise<void> {
    clearInterval(this.#ticker);
    await Promise.all([...this.pools.map((pool) => pool.stop()), this.#recorder?.close()]);
  }

  #tick(): void {
    const nowMs = this.clock.nowMs();
    for (const { balancer } of this.pools) balancer.tick(nowMs);
  }
}

/** Projections move by whole decode steps, which last 7 ms and more: finer than 100 ms would show nothing. */
const TICK_MS = 100;

/** Replicas of a balancer must not draw the same choices. */
function entropy(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number;
}
