import type { Config } from "../config/index.ts";
import { type Random, seededRandom } from "../core/index.ts";
import { type Clock, monotonicClock } from "./clock.ts";
import type { EndpointChanges } from "./endpoint-overlay.ts";
import type { WorkExchange } from "./exchange/work-exchange.ts";
import { WorkSharing } from "./exchange/work-sharing.ts";
import { Listeners } from "./listeners.ts";
import { createLog, type Log } from "./log.ts";
import { ModelDirectory } from "./model-directory.ts";
import { compareConfigs, type ReconfigureReport } from "./reconfiguration.ts";
import { Recorder, type RequestRecorder } from "./recorder.ts";
import { type ConfigSource, Reloader } from "./reloader.ts";
import { type Resolver, systemResolver } from "./resolver.ts";
import { type PoolSurroundings, ServedPool } from "./served-pool.ts";

/** What a test or a worker process replaces, each by default the real thing; and where the configuration comes from. */
export interface RuntimeParts {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
  readonly resolver?: Resolver;
  /** Undefined: the configuration cannot be read again. */
  readonly source?: ConfigSource;
  /** Between two looks at the configuration's file. */
  readonly watchIntervalMs?: number;
  /** Reaches others in front of the same endpoints; undefined: there are none. */
  readonly exchange?: WorkExchange;
  /** Takes what is to be recorded; undefined: the file that is configured. */
  readonly recorder?: RequestRecorder;
}

/** What operators changed of the endpoints, by pool. */
export type OperatorChanges = ReadonlyMap<string, EndpointChanges>;

/** The one composition root: everything that lives as long as the process, wired once. */
export class Runtime {
  readonly clock: Clock;
  readonly log: Log;
  readonly resolver: Resolver;
  readonly directory: ModelDirectory = new ModelDirectory();
  readonly reloader: Reloader;
  /** Told when another configuration is in force. */
  readonly configured: Listeners = new Listeners();
  /** Told when endpoints came, went or changed, by whatever. */
  readonly endpointsChanged: Listeners = new Listeners();
  /** Undefined: nobody else is in front of the endpoints. */
  readonly sharing: WorkSharing | undefined;
  readonly #surroundings: Omit<PoolSurroundings, "health">;
  #config: Config;
  #pools: readonly ServedPool[];
  /** Pools that a reload removed and that still have requests. */
  #leaving: readonly ServedPool[] = [];
  /** Pools that a reload added, until they are ready for the first time. */
  readonly #joining = new Set<ServedPool>();
  #ticker: NodeJS.Timeout | undefined;
  readonly #givenRecorder: RequestRecorder | undefined;
  #recorder: RequestRecorder | undefined;
  #isDraining = false;

  constructor(config: Config, parts: RuntimeParts = {}) {
    this.#config = config;
    this.clock = parts.clock ?? monotonicClock;
    this.log = parts.log ?? createLog(config.log);
    this.resolver = parts.resolver ?? systemResolver;
    const { clock, log, resolver } = this;
    const { exchange } = parts;
    const pools = (): readonly ServedPool[] => [...this.#pools, ...this.#leaving];
    this.sharing = exchange && new WorkSharing({ exchange, clock, log, pools });
    this.#givenRecorder = parts.recorder;
    this.#surroundings = {
      clock,
      log,
      resolver,
      random: parts.random ?? seededRandom(entropy()),
      endpointsChanged: () => this.endpointsChanged.tell(),
      modelsChanged: () => this.directory.refresh(),
    };
    this.#pools = config.pools.map((pool) => new ServedPool(pool, { ...this.#surroundings, health: config.health }));
    this.directory.serve(this.#pools);
    this.reloader = new Reloader(parts.source, (other) => this.reconfigure(other), {
      clock,
      log,
      watchIntervalMs: parts.watchIntervalMs,
    });
  }

  /** The one that is in force. */
  get config(): Config {
    return this.#config;
  }

  /** Those that take requests. */
  get pools(): readonly ServedPool[] {
    return this.#pools;
  }

  /** Pools that were removed and still have requests. */
  get leavingPools(): readonly ServedPool[] {
    return this.#leaving;
  }

  /** The process is about to end: whoever sends requests is told to send no more. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** New requests may come: each pool has an endpoint that was found well. A pool that has just been added takes nothing away. */
  get isReady(): boolean {
    const ready = this.#pools.filter(({ isReady }) => isReady);
    const isComplete = this.#pools.every((pool) => ready.includes(pool) || this.#joining.has(pool));
    return !this.#isDraining && ready.length > 0 && isComplete;
  }

  /** Undefined: nothing is recorded. */
  get recorder(): RequestRecorder | undefined {
    return this.#recorder;
  }

  get operatorChanges(): OperatorChanges {
    return new Map(this.#pools.map(({ name, operatorChanges }) => [name, operatorChanges]));
  }

  /** Takes on what operators changed elsewhere, in place of what they changed here. */
  takeOperatorChanges(changes: OperatorChanges): void {
    for (const pool of this.#pools) pool.takeOperatorChanges(changes.get(pool.name));
  }

  /** @throws RecordingError when requests are to be recorded and cannot be. */
  start(): void {
    const { recording } = this.#config;
    if (recording !== undefined) this.#recorder = this.#givenRecorder ?? new Recorder(recording, this.clock, this.log);
    for (const pool of this.#pools) pool.start();
    this.sharing?.start();
    this.reloader.start();
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
    this.#ticker.unref();
  }

  /**
   * Puts another configuration into force, as a whole or not at all. Pools and endpoints that stay keep their work and
   * everything learned of them; those that go finish what they have.
   */
  reconfigure(config: Config): ReconfigureReport {
    const report = compareConfigs(this.#config, config);
    if (report.kind !== "applied") return report;
    const before = new Map(this.#pools.map((pool) => [pool.name, pool]));
    const leaving = new Map(this.#leaving.map((pool) => [pool.name, pool]));
    // Whatever can fail does so here, before anything has changed.
    const pools = config.pools.map(
      (pool) => before.get(pool.name) ?? leaving.get(pool.name) ?? this.#create(config, pool),
    );
    this.#config = config;
    this.#pools = pools;
    // Watched as before: whom they hold still has to go where an endpoint is well.
    this.#leaving = [...before.values(), ...leaving.values()].filter((pool) => !pools.includes(pool));
    for (const [i, pool] of pools.entries()) {
      pool.reconfigure(config.pools[i] as Config["pools"][number], config.health);
      if (before.has(pool.name)) continue;
      this.#joining.add(pool);
      pool.start();
    }
    this.directory.serve(pools);
    this.configured.tell();
    this.endpointsChanged.tell();
    return report;
  }

  drain(): void {
    this.#isDraining = true;
  }

  async close(): Promise<void> {
    clearInterval(this.#ticker);
    const pools = [...this.#pools, ...this.#leaving];
    this.sharing?.close();
    await Promise.all([this.reloader.stop(), ...pools.map((pool) => pool.close()), this.#recorder?.close()]);
  }

  #create(config: Config, pool: Config["pools"][number]): ServedPool {
    return new ServedPool(pool, { ...this.#surroundings, health: config.health });
  }

  #tick(): void {
    const nowMs = this.clock.nowMs();
    for (const { balancer } of [...this.#pools, ...this.#leaving]) balancer.tick(nowMs);
    for (const pool of this.#pools) {
      pool.sweep();
      if (pool.isReady) this.#joining.delete(pool);
    }
    if (this.#leaving.some(({ isIdle }) => isIdle)) this.#letGo();
  }

  /** Of pools that were removed, those with nothing left to do end. */
  #letGo(): void {
    const idle = this.#leaving.filter(({ isIdle }) => isIdle);
    this.#leaving = this.#leaving.filter((pool) => !idle.includes(pool));
    for (const pool of idle) {
      this.#joining.delete(pool);
      void pool.close();
    }
    this.endpointsChanged.tell();
  }
}

/** Projections move by whole decode steps, which last 7 ms and more: finer than 100 ms would show nothing. */
const TICK_MS = 100;

/** Replicas of a balancer must not draw the same choices. */
function entropy(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number;
}
