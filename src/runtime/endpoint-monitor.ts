import type { EndpointConfig } from "../config/index.ts";
import {
  EndpointHealth,
  type HealthTransition,
  type Observation,
  type ProbeOutcome,
  takesTraffic,
} from "../core/index.ts";
import { createPoller, engineAdapters, type Poller } from "../signals/index.ts";
import type { Clock } from "./clock.ts";
import type { LiveBalancer } from "./live-balancer.ts";
import type { Log } from "./log.ts";
import type { PoolSurroundings } from "./served-pool.ts";

/** What a monitor needs from its pool. */
export interface MonitorSurroundings extends Omit<PoolSurroundings, "modelsChanged"> {
  /** The endpoint listed its models. */
  readonly modelsReported: (names: readonly string[]) => void;
}

/** Watches one endpoint: brings what its probes and its traffic show together, and tells the balancer. */
export class EndpointMonitor {
  readonly endpoint: EndpointConfig;
  readonly health: EndpointHealth;
  readonly #balancer: LiveBalancer;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #poller: Poller;
  #engine: EndpointConfig["engine"];
  #scrapeFailures = 0;

  constructor(endpoint: EndpointConfig, balancer: LiveBalancer, surroundings: MonitorSurroundings) {
    const { clock, random, health, modelsReported } = surroundings;
    this.endpoint = endpoint;
    this.#balancer = balancer;
    this.#clock = clock;
    this.#log = surroundings.log.child({ endpoint: endpoint.id });
    this.#engine = endpoint.engine;
    this.health = new EndpointHealth({
      failuresToDown: health.unhealthyAfter,
      successesToReady: health.healthyAfter,
      progressWindowMs: health.intervalMs,
    });
    this.#poller = createPoller({
      endpoint: { id: endpoint.id, url: endpoint.url, engine: endpoint.engine, apiKey: endpoint.apiKey?.reveal() },
      health: { intervalMs: health.intervalMs, timeoutMs: health.timeoutMs, path: health.path },
      nowMs: () => clock.nowMs(),
      random,
      onProbe: (outcome) => this.#moved(this.health.probed(this.#read(outcome))),
      onSignals: (signals) => this.#observe({ kind: "signals", endpointId: endpoint.id, signals }),
      onScrapeFailed: () => {
        this.#scrapeFailures++;
      },
      onRestart: () => this.#observe({ kind: "restarted", endpointId: endpoint.id }),
      onModels: (models, engine) => {
        this.#engine = engine;
        modelsReported(models.map(({ id }) => id));
      },
      log: this.#log,
    });
  }

  /** As configured or found out; `auto`: not known yet. */
  get engine(): EndpointConfig["engine"] {
    return this.#engine;
  }

  /** Since the start. A failed scrape says nothing about health. */
  get scrapeFailures(): number {
    return this.#scrapeFailures;
  }

  /** False: the engine is known to refuse `stream_options`. Where nobody can say, a 400 will. */
  get acceptsUsageOption(): boolean {
    return this.#engine === "auto" || engineAdapters[this.#engine].acceptsStreamOptions !== false;
  }

  /** A request could not connect. */
  connectFailed(reason: string, nowMs: number): void {
    this.#moved(this.health.connectFailed(reason, nowMs));
    this.#poller.probeSoon();
  }

  /** A connection broke after a request was sent on it and before an answer came: whether the engine died, a probe tells. */
  answerLost(): void {
    this.#poller.probeSoon();
  }

  /**
   * A request was answered with a failure of the engine's own. The last endpoint of a pool that takes traffic stays in:
   * with nowhere else to go, a request that may fail is better than none.
   */
  requestFailed(reason: string): void {
    if (this.#isLast) return;
    this.#moved(this.health.requestFailed(reason));
  }

  /** A request that began at `startedAtMs` was answered well. */
  requestSucceeded(startedAtMs: number): void {
    this.#moved(this.health.requestSucceeded(startedAtMs));
  }

  start(): void {
    this.#poller.start();
  }

  async stop(): Promise<void> {
    await this.#poller.stop();
  }

  get #isLast(): boolean {
    return !this.#balancer.members.some(
      ({ endpoint: { id, weight }, availability, isDraining }) =>
        id !== this.endpoint.id && weight > 0 && !isDraining && takesTraffic(availability),
    );
  }

  /** Without a key of our own the clients bring theirs: an endpoint that refuses an anonymous probe is well. */
  #read(outcome: ProbeOutcome): ProbeOutcome {
    return outcome.kind === "auth_failed" && this.endpoint.apiKey === undefined ? { kind: "ok" } : outcome;
  }

  #moved(transition: HealthTransition | undefined): void {
    if (transition === undefined) return;
    const { from, to, reason } = transition;
    this.#log[to === "ready" ? "info" : "warn"]({ from, to, reason }, `endpoint is ${to}`);
    this.#observe({ kind: "availability", endpointId: this.endpoint.id, availability: to });
  }

  #observe(observation: Observation): void {
    this.#balancer.observe(observation, this.#clock.nowMs());
  }
}
