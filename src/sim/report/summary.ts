import { workTokens } from "../../core/index.ts";
import type { RequestRecord, SimulationResult, Slo } from "../result.ts";
import { type LatencySummary, latenciesOf, summarizeLatency, tpotMs, ttftMs } from "./latencies.ts";

/** One simulation in numbers. */
export interface Summary {
  readonly policy: string;
  readonly workload: string;
  readonly fleet: string;
  readonly seed: number;
  /** All requests that arrived: ended + refused + unfinished. */
  readonly requests: number;
  readonly ended: number;
  /** Never sent to an endpoint. */
  readonly refused: number;
  /** Sent, and lost with their endpoint or still running when the simulation was cut. */
  readonly unfinished: number;
  /** Arrival to first token; undefined: no request had one. */
  readonly ttftMs: LatencySummary | undefined;
  /** Mean time per output token after the first; undefined: no request that ended had a second token. */
  readonly tpotMs: LatencySummary | undefined;
  /** Arrival to end; undefined: no request ended. */
  readonly e2eMs: LatencySummary | undefined;
  /** Share of all requests that ended within both limits, 0 to 1; 0 where none arrived. */
  readonly goodputRatio: number;
  /** Output tokens of requests that ended, per second between first arrival and last end. */
  readonly outputTokensPerSecond: number;
  /** Cached tokens / prompt tokens of the requests that were sent, 0 to 1. */
  readonly hitRatio: number;
  /** Longest time that a request which was sent in the end had waited at the balancer. */
  readonly longestHoldMs: number;
  readonly preemptions: number;
  /** Requests of the endpoint that got most / mean over the endpoints; 1: even, and where none was sent. */
  readonly requestSpread: number;
  /** The same of work: computed prompt tokens and output tokens, in work tokens. */
  readonly workSpread: number;
  /** Real time the simulation took. */
  readonly wallMs: number;
}

/** Counts one run; `slo` says what is good. */
export function summarize(result: SimulationResult, slo: Slo): Summary {
  const { requests, timeline } = result;
  const latencies = latenciesOf(requests);
  return {
    policy: result.policy,
    workload: result.workload,
    fleet: result.fleet,
    seed: result.seed,
    ...countsOf(requests, slo),
    ttftMs: summarizeLatency(latencies.ttftMs),
    tpotMs: summarizeLatency(latencies.tpotMs),
    e2eMs: summarizeLatency(latencies.e2eMs),
    ...spreadsOf(requests, Object.keys(timeline.endpoints)),
    preemptions: result.preemptions,
    wallMs: result.wallMs,
  };
}

type Counts = Pick<
  Summary,
  | "requests"
  | "ended"
  | "refused"
  | "unfinished"
  | "goodputRatio"
  | "outputTokensPerSecond"
  | "hitRatio"
  | "longestHoldMs"
>;

function countsOf(requests: readonly RequestRecord[], slo: Slo): Counts {
  let ended = 0;
  let refused = 0;
  let good = 0;
  let outputTokens = 0;
  let promptTokens = 0;
  let cachedTokens = 0;
  let longestHoldMs = 0;
  let lastEndMs = 0;
  for (const record of requests) {
    if (record.sentAtMs === undefined) {
      refused++;
      continue;
    }
    promptTokens += record.promptTokens;
    cachedTokens += record.cachedTokens;
    longestHoldMs = Math.max(longestHoldMs, record.sentAtMs - record.arrivedAtMs);
    if (record.endedAtMs === undefined) continue;
    ended++;
    outputTokens += record.outputTokens;
    lastEndMs = Math.max(lastEndMs, record.endedAtMs);
    if (isGood(record, slo)) good++;
  }
  const spanMs = lastEndMs - (requests[0]?.arrivedAtMs ?? 0);
  return {
    requests: requests.length,
    ended,
    refused,
    unfinished: requests.length - ended - refused,
    goodputRatio: ratio(good, requests.length),
    outputTokensPerSecond: ended === 0 ? 0 : ratio(1000 * outputTokens, spanMs),
    hitRatio: ratio(cachedTokens, promptTokens),
    longestHoldMs,
  };
}

/** Within both limits, for a request that ended; an answer of one token has no time per token to miss. */
function isGood(record: RequestRecord, slo: Slo): boolean {
  return (ttftMs(record) ?? Number.POSITIVE_INFINITY) <= slo.ttftMs && (tpotMs(record) ?? 0) <= slo.tpotMs;
}

function spreadsOf(
  requests: readonly RequestRecord[],
  endpoints: readonly string[],
): Pick<Summary, "requestSpread" | "workSpread"> {
  const requestsOf = new Map(endpoints.map((id) => [id, 0]));
  const workOf = new Map(requestsOf);
  for (const { endpoint, promptTokens, cachedTokens, outputTokens } of requests) {
    if (endpoint === undefined) continue;
    requestsOf.set(endpoint, (requestsOf.get(endpoint) ?? 0) + 1);
    workOf.set(endpoint, (workOf.get(endpoint) ?? 0) + workTokens(promptTokens - cachedTokens, outputTokens));
  }
  return { requestSpread: maxOverMean([...requestsOf.values()]), workSpread: maxOverMean([...workOf.values()]) };
}

function maxOverMean(loads: readonly number[]): number {
  const sum = loads.reduce((total, load) => total + load, 0);
  return sum === 0 ? 1 : (Math.max(...loads) * loads.length) / sum;
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
