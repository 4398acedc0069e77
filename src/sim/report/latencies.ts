import type { RequestRecord } from "../result.ts";

/** The latencies of a run's requests, each list ascending, in ms. */
export interface Latencies {
  /** From arrival to first token, of all requests that had one. */
  readonly ttftMs: Float64Array;
  /** Mean time per output token after the first, of all that ended with more than one. */
  readonly tpotMs: Float64Array;
  /** From arrival to end, of all that ended. */
  readonly e2eMs: Float64Array;
}

/** Names of the three latencies, in the order in which reports show them. */
export const LATENCY_KEYS: readonly (keyof Latencies)[] = ["ttftMs", "tpotMs", "e2eMs"];

/** Mean and exact quantiles of one latency, in ms. */
export interface LatencySummary {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** Arrival to first token; undefined: there was none. */
export function ttftMs({ arrivedAtMs, firstTokenAtMs }: RequestRecord): number | undefined {
  return firstTokenAtMs === undefined ? undefined : firstTokenAtMs - arrivedAtMs;
}

/** Mean time per output token after the first; undefined: it did not end, or had no second token. */
export function tpotMs({ firstTokenAtMs, endedAtMs, outputTokens }: RequestRecord): number | undefined {
  if (firstTokenAtMs === undefined || endedAtMs === undefined || outputTokens < 2) return undefined;
  return (endedAtMs - firstTokenAtMs) / (outputTokens - 1);
}

/** Arrival to end; undefined: it did not end. */
export function e2eMs({ arrivedAtMs, endedAtMs }: RequestRecord): number | undefined {
  return endedAtMs === undefined ? undefined : endedAtMs - arrivedAtMs;
}

/** Measures and sorts all `requests`. */
export function latenciesOf(requests: readonly RequestRecord[]): Latencies {
  return {
    ttftMs: ascending(requests, ttftMs),
    tpotMs: ascending(requests, tpotMs),
    e2eMs: ascending(requests, e2eMs),
  };
}

function ascending(
  requests: readonly RequestRecord[],
  measure: (record: RequestRecord) => number | undefined,
): Float64Array {
  const values = new Float64Array(requests.length);
  let count = 0;
  for (const record of requests) {
    const value = measure(record);
    if (value !== undefined) values[count++] = value;
  }
  return values.subarray(0, count).sort();
}

/** Mean and quantiles of an `ascending` list; undefined: it is empty. */
export function summarizeLatency(ascending: Float64Array): LatencySummary | undefined {
  if (ascending.length === 0) return undefined;
  let sum = 0;
  for (const value of ascending) sum += value;
  return {
    mean: sum / ascending.length,
    p50: quantile(ascending, 0.5),
    p90: quantile(ascending, 0.9),
    p99: quantile(ascending, 0.99),
  };
}

/** Nearest rank: the smallest value that at least the share `q` of the values of a non-empty list do not exceed. */
export function quantile(ascending: Float64Array, q: number): number {
  // 0.07 x 100 is a little more than 7 in floating point, and must not become rank 8.
  const rank = Math.ceil(q * ascending.length - 1e-9);
  return ascending[Math.max(rank, 1) - 1] as number;
}

/** Share of an ascending list that is at most `limit`, 0 to 1; 0 for an empty one. */
export function shareWithin(ascending: Float64Array, limit: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] as number) <= limit) low = middle + 1;
    else high = middle;
  }
  return ascending.length === 0 ? 0 : low / ascending.length;
}
