import type { LookupFunction } from "node:net";
import type { EngineKind, ProbeOutcome, Random } from "../core/index.ts";
import { createPollLoop, type PollLoop } from "./poll-loop.ts";
import { createProbeClient, type ProbeClient, type ProbeTls } from "./probe-client.ts";
import { createProber, type Prober } from "./prober.ts";
import { createScraper, type PollerLog, type ScrapeEvents, type Scraper } from "./scraper.ts";

/** An engine kind, or `auto` while it has to be found out. */
export type DetectedEngine = EngineKind | "auto";

export interface PolledEndpoint {
  readonly id: string;
  readonly url: string;
  /** `auto`: found out when it first answers, and again after it failed. */
  readonly engine: DetectedEngine;
  /** Sent with each GET as bearer token; undefined: none. */
  readonly apiKey: string | undefined;
  /** Undefined: an https endpoint is verified by the system's authorities. */
  readonly tls: ProbeTls | undefined;
  /** How the name of its host is resolved; absent: as the system does. */
  readonly lookup?: LookupFunction;
}

export interface PollingOptions {
  /** Between the end of a probe and the start of the next, give or take a tenth. */
  readonly intervalMs: number;
  /** For one GET, from its start to the last byte of its answer. */
  readonly timeoutMs: number;
  /** Probed in place of the engine's own path and read by its status alone; undefined: the engine's own. */
  readonly path: string | undefined;
}

export interface PollerOptions extends ScrapeEvents {
  readonly endpoint: PolledEndpoint;
  readonly health: PollingOptions;
  /** After each health probe. */
  onProbe(outcome: ProbeOutcome): void;
  readonly log: PollerLog;
  nowMs(): number;
  readonly random: Random;
}

/** Watches one endpoint with nothing but GETs. Every callback comes between `start` and `stop`. */
export interface Poller {
  start(): void;
  /** Probes now instead of at the end of the interval: after a refused connection, for instance. */
  probeSoon(): void;
  /** Resolves when no timer, socket or callback is left; may be called twice. */
  stop(): Promise<void>;
}

/**
 * First interval of an endpoint that is new or has just come up; it doubles up to the configured one. A fleet is
 * ready, and a recovery confirmed, within a second. Failures are confirmed at the configured pace: haste would turn
 * a pause into an outage.
 */
const QUICK_INTERVAL_MS = 250;
const MODELS_INTERVAL_MS = 60_000;
/** Keeps many pollers, in one balancer or several, from falling into step. */
const JITTER = 0.1;

export function createPoller(options: PollerOptions): Poller {
  return new EndpointPoller(options);
}

/** Two loops over one client: a scrape that hangs delays no probe, and no scrape has a say in health. */
class EndpointPoller implements Poller {
  readonly #options: PollerOptions;
  readonly #client: ProbeClient;
  readonly #prober: Prober;
  readonly #scraper: Scraper;
  readonly #probing: PollLoop;
  readonly #scraping: PollLoop;
  #isUp = false;
  #paceMs = QUICK_INTERVAL_MS;
  #modelsReadAtMs = Number.NEGATIVE_INFINITY;
  #stopping: Promise<void> | undefined;

  constructor(options: PollerOptions) {
    const { endpoint, health, log, nowMs } = options;
    this.#options = options;
    this.#client = createProbeClient({
      url: endpoint.url,
      apiKey: endpoint.apiKey,
      timeoutMs: health.timeoutMs,
      tls: endpoint.tls,
      lookup: endpoint.lookup,
    });
    this.#prober = createProber({
      client: this.#client,
      engine: endpoint.engine,
      path: health.path,
      hasApiKey: endpoint.apiKey !== undefined,
      nowMs,
    });
    this.#scraper = createScraper({
      client: this.#client,
      endpointId: endpoint.id,
      events: {
        onSignals: this.#unlessStopped((signals) => options.onSignals(signals)),
        onScrapeFailed: this.#unlessStopped((reason) => options.onScrapeFailed(reason)),
        onRestart: this.#unlessStopped(() => options.onRestart()),
        onModels: this.#unlessStopped((models, engine) => options.onModels(models, engine)),
      },
      log: {
        info: this.#unlessStopped((fields, message) => log.info(fields, message)),
        warn: this.#unlessStopped((fields, message) => log.warn(fields, message)),
      },
      nowMs,
    });
    this.#probing = createPollLoop({ task: () => this.#probe(), minGapMs: QUICK_INTERVAL_MS, nowMs });
    this.#scraping = createPollLoop({ task: () => this.#scrape(), minGapMs: 0, nowMs });
  }

  start(): void {
    this.#probing.runSoon();
  }

  probeSoon(): void {
    this.#probing.runSoon();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#end();
    return this.#stopping;
  }

  async #end(): Promise<void> {
    const loops = [this.#probing.stop(), this.#scraping.stop()];
    this.#client.destroy();
    await Promise.all(loops);
  }

  async #probe(): Promise<number> {
    const outcome = await this.#prober.probe();
    if (this.#stopping !== undefined) return 0;
    const wasUp = this.#isUp;
    // A probe that timed out leaves open whether the engine is down or merely busy.
    if (outcome.kind !== "timed_out") this.#isUp = outcome.kind === "ok";
    if (this.#isUp && !wasUp) this.#cameUp();
    this.#options.onProbe(outcome);
    return this.#nextProbeInMs();
  }

  #cameUp(): void {
    this.#paceMs = QUICK_INTERVAL_MS;
    this.#modelsReadAtMs = Number.NEGATIVE_INFINITY;
    this.#scraping.runSoon();
  }

  #nextProbeInMs(): number {
    const { intervalMs } = this.#options.health;
    const paceMs = Math.min(this.#paceMs, intervalMs);
    this.#paceMs = Math.min(2 * paceMs, intervalMs);
    return this.#jittered(paceMs);
  }

  async #scrape(): Promise<number> {
    const { adapter } = this.#prober;
    if (this.#isUp && adapter !== undefined) {
      const { nowMs } = this.#options;
      if (nowMs() - this.#modelsReadAtMs >= MODELS_INTERVAL_MS && (await this.#scraper.readModels(adapter))) {
        this.#modelsReadAtMs = nowMs();
        await this.#scraper.readSlots(adapter);
      }
      await this.#scraper.readMetrics(adapter);
    }
    return this.#jittered(this.#options.health.intervalMs);
  }

  #jittered(intervalMs: number): number {
    return intervalMs * (1 + JITTER * (2 * this.#options.random.next() - 1));
  }

  #unlessStopped<Args extends readonly unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
    return (...args) => {
      if (this.#stopping === undefined) callback(...args);
    };
  }
}
