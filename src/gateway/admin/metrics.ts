import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Runtime } from "../../runtime/index.ts";
import type { AnswerTokens } from "../answer/answer-relay.ts";
import type { RequestOutcome } from "../outcome.ts";
import { type OpenConnections, registerEndpointGauges } from "./endpoint-gauges.ts";
import { FailoverMetrics } from "./failover-metrics.ts";
import { GoneEndpoints } from "./gone-endpoints.ts";
import { HoldMetrics } from "./hold-metrics.ts";
import { registerPoolGauges } from "./pool-gauges.ts";
import { registerReloadMetrics } from "./reload-metrics.ts";
import { Tally } from "./tally.ts";

/** A request that is over, as the metrics see it. Every label value comes from a closed or configured set. */
export interface EndedRequest {
  /** Undefined: it never got as far as a pool. */
  readonly pool: string | undefined;
  /** Undefined: it was sent to no endpoint. */
  readonly endpoint: string | undefined;
  readonly route: string;
  readonly outcome: RequestOutcome;
  readonly arrivedAtMs: number;
  readonly endedAtMs: number;
  readonly tokens: AnswerTokens | undefined;
}

/** What is counted against `limits.bufferedBytes`. */
interface Buffered {
  readonly usedBytes: number;
}

/**
 * OpenTelemetry's advice for TTFT, in seconds, with 0.15, 0.2 and 0.35 between for a finer median, and beyond its last
 * edge of 10 s: long prompts overflow it.
 */
const FIRST_TOKEN_SECONDS = [
  0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
];
const OUTPUT_TOKEN_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const DURATION_SECONDS = [0.01, 0.04, 0.16, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 160, 320, 640];

/** The balancer's Prometheus metrics. What is measured is pushed; what the ledger knows is read when asked for. */
export class GatewayMetrics {
  readonly registry: Registry = new Registry();
  readonly holds: HoldMetrics = new HoldMetrics(this.registry);
  readonly failover: FailoverMetrics = new FailoverMetrics(this.registry);
  #inFlight = 0;
  readonly #requests: Counter;
  readonly #duration: Histogram;
  readonly #firstToken: Histogram;
  readonly #outputToken: Histogram;
  readonly #promptTokens: Counter;
  readonly #cachedTokens: Counter;
  readonly #outputTokens: Counter;
  readonly #sessionKeys: Readonly<Record<SessionKeyResult, Tally>>;
  readonly #series = new Map<string, EndpointSeries>();

  constructor(runtime: Runtime, upstreams: OpenConnections, buffers: Buffered) {
    const registers = [this.registry];
    const perEndpoint = ["pool", "endpoint"];
    const inFlight = (): number => this.#inFlight;
    const flush = (): void => this.#flush();
    new Gauge({
      name: "evenkeel_requests_in_flight",
      help: "Requests that have arrived and not ended.",
      registers,
      collect() {
        this.set(inFlight());
      },
    });
    new Gauge({
      name: "evenkeel_buffered_bytes",
      help: "What the bodies of requests take in memory, those of all together.",
      registers,
      collect() {
        this.set(buffers.usedBytes);
      },
    });
    this.#requests = new Counter({
      name: "evenkeel_requests_total",
      help: "Requests that ended, by their one outcome. Empty pool or endpoint: it did not get that far.",
      labelNames: [...perEndpoint, "route", "outcome"],
      registers,
      collect: flush,
    });
    const histogram = (name: string, help: string, buckets: number[]): Histogram =>
      new Histogram({ name, help, buckets, labelNames: perEndpoint, registers });
    const counter = (name: string, help: string, labelNames: string[] = perEndpoint): Counter =>
      new Counter({ name, help, labelNames, registers, collect: flush });
    this.#duration = histogram(
      "evenkeel_request_duration_seconds",
      "From arrival to the end of the answer, requests that ended ok.",
      DURATION_SECONDS,
    );
    this.#firstToken = histogram(
      "evenkeel_time_to_first_token_seconds",
      "From arrival to the first token of a stream.",
      FIRST_TOKEN_SECONDS,
    );
    this.#outputToken = histogram(
      "evenkeel_time_per_output_token_seconds",
      "Mean time between tokens after the first, per stream.",
      OUTPUT_TOKEN_SECONDS,
    );
    this.#promptTokens = counter("evenkeel_prompt_tokens_total", "Prompt tokens as the endpoints counted them.");
    this.#cachedTokens = counter("evenkeel_cached_tokens_total", "The part of those that came from a prefix cache.");
    this.#outputTokens = counter(
      "evenkeel_output_tokens_total",
      "Output tokens, counted by the endpoint or seen to pass.",
    );
    const sessionKeys = counter("evenkeel_session_keys_total", "Requests by what became of their session key.", [
      "result",
    ]);
    this.#sessionKeys = {
      found: new Tally(sessionKeys.labels("found")),
      absent: new Tally(sessionKeys.labels("absent")),
      unusable: new Tally(sessionKeys.labels("unusable")),
    };
    registerEndpointGauges(this.registry, runtime, upstreams);
    registerPoolGauges(this.registry, runtime);
    registerReloadMetrics(this.registry, runtime);
    new GoneEndpoints(this.registry, (pool, endpoint) => this.#series.delete(seriesKey(pool, endpoint))).follow(
      runtime,
    );
  }

  requestBegan(): void {
    this.#inFlight++;
  }

  requestEnded(ended: EndedRequest): void {
    this.#inFlight--;
    const { pool = "", endpoint = "", route, outcome } = ended;
    const series = this.#seriesOf(pool, endpoint);
    this.#countOutcome(series, route, outcome);
    if (endpoint === "") return;
    if (outcome === "ok") series.duration.observe((ended.endedAtMs - ended.arrivedAtMs) / 1000);
    if (ended.tokens !== undefined) observeTokens(series, ended.tokens, ended.arrivedAtMs);
  }

  /** A request that ended where it began, at the gateway itself. */
  answeredLocally(route: string, outcome: RequestOutcome): void {
    this.#countOutcome(this.#seriesOf("", ""), route, outcome);
  }

  sessionKey(result: SessionKeyResult): void {
    this.#sessionKeys[result].add();
  }

  #countOutcome(series: EndpointSeries, route: string, outcome: RequestOutcome): void {
    const key = `${route} ${outcome}`;
    let tally = series.outcomes.get(key);
    if (tally === undefined) {
      tally = new Tally(this.#requests.labels({ ...series.labels, route, outcome }));
      series.outcomes.set(key, tally);
    }
    tally.add();
  }

  /** Whoever reads a counter reads all that was added to it. */
  #flush(): void {
    for (const tally of Object.values(this.#sessionKeys)) tally.flush();
    for (const { outcomes, promptTokens, cachedTokens, outputTokens } of this.#series.values()) {
      for (const tally of outcomes.values()) tally.flush();
      promptTokens.flush();
      cachedTokens.flush();
      outputTokens.flush();
    }
  }

  /** Series by endpoint, looked up once: finding one by its labels costs more than adding to it. */
  #seriesOf(pool: string, endpoint: string): EndpointSeries {
    const key = seriesKey(pool, endpoint);
    let series = this.#series.get(key);
    if (series === undefined) {
      const labels = { pool, endpoint };
      series = {
        labels,
        outcomes: new Map(),
        duration: this.#duration.labels(labels),
        firstToken: this.#firstToken.labels(labels),
        outputToken: this.#outputToken.labels(labels),
        promptTokens: new Tally(this.#promptTokens.labels(labels)),
        cachedTokens: new Tally(this.#cachedTokens.labels(labels)),
        outputTokens: new Tally(this.#outputTokens.labels(labels)),
      };
      this.#series.set(key, series);
    }
    return series;
  }
}

function seriesKey(pool: string, endpoint: string): string {
  return `${pool} ${endpoint}`;
}

type SessionKeyResult = "found" | "absent" | "unusable";

interface EndpointSeries {
  readonly labels: { readonly pool: string; readonly endpoint: string };
  /** By route and outcome. */
  readonly outcomes: Map<string, Tally>;
  readonly duration: Histogram.Internal<string>;
  readonly firstToken: Histogram.Internal<string>;
  readonly outputToken: Histogram.Internal<string>;
  readonly promptTokens: Tally;
  readonly cachedTokens: Tally;
  readonly outputTokens: Tally;
}

function observeTokens(series: EndpointSeries, tokens: AnswerTokens, arrivedAtMs: number): void {
  const { firstTokenAtMs, lastTokenAtMs, promptTokens, cachedTokens, outputTokens } = tokens;
  if (promptTokens !== undefined) series.promptTokens.add(promptTokens);
  if (cachedTokens !== undefined) series.cachedTokens.add(cachedTokens);
  if (outputTokens !== undefined) series.outputTokens.add(outputTokens);
  if (firstTokenAtMs === undefined) return;
  series.firstToken.observe((firstTokenAtMs - arrivedAtMs) / 1000);
  if (lastTokenAtMs === undefined || outputTokens === undefined || outputTokens < 2) return;
  series.outputToken.observe((lastTokenAtMs - firstTokenAtMs) / 1000 / (outputTokens - 1));
}
