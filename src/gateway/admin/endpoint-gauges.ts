import { type Aggregator, Counter, Gauge, type Registry } from "prom-client";
import { type Member, takesTraffic } from "../../core/index.ts";
import type { Runtime, ServedPool } from "../../runtime/index.ts";

/** Who knows how many connections there are. */
export interface OpenConnections {
  openConnections(pool: ServedPool, endpointId: string): number;
}

/** Metrics that show the ledger and the pools as they are at the moment of the scrape. */
export function registerEndpointGauges(registry: Registry, runtime: Runtime, upstreams: OpenConnections): void {
  const labelNames = ["pool", "endpoint"];
  const metric = (
    kind: typeof Gauge | typeof Counter,
    name: string,
    help: string,
    read: Read,
    aggregator: Aggregator = "sum",
  ): void => {
    new kind({
      name,
      help,
      labelNames,
      aggregator,
      registers: [registry],
      collect() {
        this.reset();
        for (const pool of runtime.pools) {
          for (const member of pool.balancer.members) {
            const value = read(member, runtime.clock.nowMs(), pool);
            if (value !== undefined) this.inc({ pool: pool.name, endpoint: member.endpoint.id }, value);
          }
        }
      },
    });
  };
  for (const [name, help, read] of WORK) metric(Gauge, name, help, read);
  for (const [aggregator, name, help, read] of VIEWS) metric(Gauge, name, help, read, aggregator);
  metric(
    Gauge,
    "evenkeel_endpoint_connections",
    "Connections to the endpoint that are open, idle ones included.",
    ({ endpoint }, _nowMs, pool) => upstreams.openConnections(pool, endpoint.id),
  );
  metric(
    Counter,
    "evenkeel_endpoint_ejections_total",
    "Times that failed requests took the endpoint out, failed trials included.",
    ({ breaker }) => breaker.openings,
  );
  metric(
    Counter,
    "evenkeel_endpoint_scrape_failures_total",
    "Readings of the engine's metrics that failed; they say nothing about its health.",
    ({ endpoint }, _nowMs, pool) => pool.monitor(endpoint.id).scrapeFailures,
  );
}

type Read = (member: Member, nowMs: number, pool: ServedPool) => number | undefined;

const BREAKER_STATES = { closed: 0, half_open: 1, open: 2 } as const;

/** This process's own part: those of several processes add up. */
const WORK: readonly (readonly [name: string, help: string, read: Read])[] = [
  [
    "evenkeel_endpoint_waiting_requests",
    "Requests sent that have shown no token.",
    ({ account }, nowMs) => account.own(nowMs).waitingRequests,
  ],
  [
    "evenkeel_endpoint_running_requests",
    "Requests past their first token.",
    ({ account }, nowMs) => account.own(nowMs).runningRequests,
  ],
  [
    "evenkeel_endpoint_held_requests",
    "Requests held for the endpoint and not sent.",
    ({ held }, nowMs) => held.own(nowMs).requests,
  ],
  [
    "evenkeel_endpoint_waiting_prefill_tokens",
    "Uncached prompt tokens whose prefill is still to be done.",
    ({ account }, nowMs) => account.own(nowMs).waitingPrefillTokens,
  ],
  [
    "evenkeel_endpoint_expected_output_tokens",
    "Output tokens still expected of the requests in flight.",
    ({ account }, nowMs) => account.own(nowMs).outputTokens,
  ],
  [
    "evenkeel_endpoint_context_tokens",
    "Tokens the running requests hold in the KV cache.",
    ({ account }, nowMs) => account.own(nowMs).contextTokens,
  ],
];

/** What this process believes of the endpoint, and how that and what other processes believe become one. */
const VIEWS: readonly (readonly [aggregator: Aggregator, name: string, help: string, read: Read])[] = [
  [
    "min",
    "evenkeel_endpoint_up",
    "1: takes traffic; 0: down, loading or misconfigured.",
    ({ availability }) => Number(takesTraffic(availability)),
  ],
  [
    "max",
    "evenkeel_endpoint_draining",
    "1: finishes what it has and takes nothing new.",
    ({ isDraining }) => Number(isDraining),
  ],
  [
    "max",
    "evenkeel_endpoint_breaker_state",
    "0: takes requests; 1: one at a time, on trial; 2: ejected.",
    ({ breaker }, nowMs) => BREAKER_STATES[breaker.stateAt(nowMs)],
  ],
  [
    "min",
    "evenkeel_endpoint_warmth_ratio",
    "Part of its full share that the endpoint may have while it warms up.",
    ({ slowStart }, nowMs) => slowStart.warmthAt(nowMs),
  ],
  [
    "average",
    "evenkeel_endpoint_capacity_tokens_per_second",
    "Output tokens per second, configured or learned.",
    ({ speed }) => speed.tokensPerSecond,
  ],
  [
    "average",
    "evenkeel_endpoint_kv_used_ratio",
    "KV cache in use as the engine reports it.",
    ({ signals }) => signals?.kvUsedRatio,
  ],
  [
    "average",
    "evenkeel_endpoint_engine_waiting_requests",
    "Queue length as the engine reports it.",
    ({ signals }) => signals?.waitingRequests,
  ],
];
