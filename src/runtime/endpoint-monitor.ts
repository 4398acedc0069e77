import type { EndpointConfig, HealthConfig } from "../config/index.ts";
import {
  EndpointHealth,
  type HealthOptions,
  type HealthTransition,
  type Lease,
  type Observation,
  type ProbeOutcome,
} from "../core/index.ts";
import { createPoller, engineAdapters, type Poller } from "../signals/index.ts";
import type { Clock } from "./clock.ts";
import type { LiveBalancer } from "./live-balancer.ts";
import type { Log } from "./log.ts";
import { lookupBy } from "./resolver.ts";
import { isSameValue } from "./same-value.ts";
import type { PoolSurroundings } from "./served-pool.ts";

/** What a monitor needs from its pool. */
export interface MonitorSurroundings
  extends Pick<PoolSurroundings, "clock" | "random" | "log" | "resolver" | "health"> {
  /** The endpoint listed its models. */
  readonly modelsReported: (names: readonly string[]) => void;
}

/** Watches one endpoint: brings what its probes and its traffic show together, and tells the balancer. */
export class EndpointMonitor {
  readonly health: EndpointHealth;
  readonly #balancer: LiveBalancer;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #surroundings: MonitorSurroundings;
  #endpoint: EndpointConfig;
  #settings: HealthConfig;
  #poller: Poller;
  #phase: "created" | "running" | "stopped" = "created";
  #engine: EndpointConfig["engine"];
  #scrapeFailures = 0;

  constructor(endpoint: EndpointConfig, balancer: LiveBalancer, surroundings: MonitorSurroundings) {
    const { clock, health } = surroundings;
    this.#endpoint = endpoint;
    this.#settings = health;
    this.#surroundings = surroundings;
    this.#balancer = balancer;
    this.#clock = clock;
    this.#log = surroundings.log.child({ endpoint: endpoint.id });
    this.#engine = endpoint.engine;
    this.health = new EndpointHealth(thresholdsOf(health));
    this.#poller = this.#createPoller();
  }

  get endpoint(): EndpointConfig {
    return this.#endpoint;
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

  /** Since when nobody has listened there, as far as connections tell; undefined: somebody does, or it is not known. */
  get refusesSinceMs(): number | undefined {
    return this.health.refusesSinceMs;
  }

  /** The request of `lease` found no connection. */
  connectFailed(lease: Lease, reason: string): void {
    this.#moved(this.health.connectFailed(reason, this.#clock.nowMs()));
    this.#report({ kind: "failed", endpointId: this.#endpoint.id, lease }, reason);
    this.#poller.probeSoon();
  }

  /**
   * The request of `lease` was answered well: its first byte, or the first token of a stream, is soon enough to say so,
   * and is the moment to say it. Should the answer break or stall after that, `failed` follows and replaces it.
   */
  succeeded(lease: Lease): void {
    this.#moved(this.health.requestSucceeded(lease.openedAtMs));
    this.#report({ kind: "succeeded", endpointId: this.#endpoint.id, lease }, "a request was answered");
  }

  /** The endpoint failed the request of `lease`, which it had: its own kind of error, a broken or missing answer, a time-out. */
  failed(lease: Lease, reason: string): void {
    this.#report({ kind: "failed", endpointId: this.#endpoint.id, lease }, reason);
    // Whether its engine died, a probe tells.
    this.#poller.probeSoon();
  }

  /** The endpoint refused the request of `lease` for overload. `retryAfterMs`: as it said; undefined: it did not. */
  busy(lease: Lease, retryAfterMs: number | undefined): void {
    this.#observe({ kind: "busy", endpointId: this.#endpoint.id, lease, retryAfterMs });
  }

  /** The request of `lease` ended in a way that says nothing of the endpoint: the client's fault, or the client left. */
  neutral(lease: Lease): void {
    this.#observe({ kind: "neutral", endpointId: this.#endpoint.id, lease });
  }

  /** Also after `stop`: what was known of the endpoint's health then is known still. While it runs it does nothing. */
  start(): void {
    if (this.#phase === "running") return;
    const wasStopped = this.#phase === "stopped";
    this.#phase = "running";
    if (wasStopped) {
      this.#poller = this.#createPoller();
      // Requests that ran on may have shown something meanwhile.
      this.#observe({ kind: "availability", endpointId: this.#endpoint.id, availability: this.health.availability });
    }
    this.#poller.start();
  }

  /** The balancer hears nothing of it any more: the endpoint may have left, and another one may have its name. */
  async stop(): Promise<void> {
    this.#phase = "stopped";
    await this.#poller.stop();
  }

  /** Other settings for the same server: what is known of its health stays. */
  reconfigure(endpoint: EndpointConfig, settings: HealthConfig): void {
    const before = [polledPart(this.#endpoint), this.#settings];
    this.#endpoint = endpoint;
    this.#settings = settings;
    this.health.configure(thresholdsOf(settings));
    if (isSameValue(before, [polledPart(endpoint), settings])) return;
    if (endpoint.engine !== "auto") this.#engine = endpoint.engine;
    void this.#poller.stop();
    this.#poller = this.#createPoller();
    if (this.#phase === "running") this.#poller.start();
  }

  #createPoller(): Poller {
    const { random, resolver, modelsReported } = this.#surroundings;
    const { id, url, engine, apiKey, tls } = this.#endpoint;
    const { intervalMs, timeoutMs, path } = this.#settings;
    return createPoller({
      endpoint: {
        id,
        url,
        engine,
        apiKey: apiKey?.reveal(),
        tls: tls && { ...tls, key: tls.key?.reveal() },
        lookup: lookupBy((host) => resolver.resolve(host)),
      },
      health: { intervalMs, timeoutMs, path },
      nowMs: () => this.#clock.nowMs(),
      random,
      onProbe: (outcome) => this.#moved(this.health.probed(this.#read(outcome), this.#clock.nowMs())),
      onSignals: (signals) => this.#observe({ kind: "signals", endpointId: id, signals }),
      onScrapeFailed: () => {
        this.#scrapeFailures++;
      },
      onRestart: () => this.#observe({ kind: "restarted", endpointId: id }),
      onModels: (models, kind) => {
        this.#engine = kind;
        modelsReported(models.map((model) => model.id));
      },
      log: this.#log,
    });
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

  /** Tells the balancer what became of a request, and the log whether the endpoint is out or back by that. */
  #report(observation: Observation, reason: string): void {
    const { id } = this.#endpoint;
    const breaker = this.#balancer.members.find(({ endpoint }) => endpoint.id === id)?.breaker;
    if (breaker === undefined) return;
    const { openings, isOpen } = breaker;
    this.#observe(observation);
    if (breaker.openings > openings) {
      const forMs = breaker.openUntilMs - breaker.openedAtMs;
      this.#log.warn({ reason, forMs }, "endpoint is ejected");
    } else if (isOpen && !breaker.isOpen) {
      this.#log.info({ reason }, "endpoint takes requests again");
    }
  }

  #observe(observation: Observation): void {
    if (this.#phase === "stopped") return;
    this.#balancer.observe(observation, this.#clock.nowMs());
  }
}

/** What its probes depend on. */
function polledPart({ url, engine, apiKey, tls }: EndpointConfig): object {
  return { url, engine, apiKey, tls };
}

function thresholdsOf({ unhealthyAfter, healthyAfter, intervalMs }: HealthConfig): HealthOptions {
  return { failuresToDown: unhealthyAfter, successesToReady: healthyAfter, progressWindowMs: intervalMs };
}
