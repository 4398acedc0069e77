import { type Random, seededRandom } from "../../core/index.ts";
import { TraceRow, type TraceSource, traceLines } from "./trace-text.ts";
import type { Arrival, Workload, WorkloadRequest } from "./workload.ts";

/** As published: one entry of `hash_ids` per started block. */
const BLOCK_TOKENS = 512;

/** How to read the trace. */
export interface MooncakeOptions {
  readonly name: string;
  /** Of the place of each request within its tick; undefined: evenly spread. */
  readonly seed?: number | undefined;
}

/**
 * Reads Mooncake's traces. Where several rows share a timestamp, they are spread over the tick of the trace's clock:
 * the conversation trace counts in steps of 3 s, and would else send ten requests at once.
 */
export function readMooncake(source: TraceSource, { name, seed }: MooncakeOptions): Workload {
  const requestsAt = new Map<number, WorkloadRequest[]>();
  for (const line of traceLines(source)) {
    const row = TraceRow.ofLine(line);
    const atMs = row.amount("timestamp");
    const requests = requestsAt.get(atMs);
    if (requests === undefined) requestsAt.set(atMs, [requestOf(row)]);
    else requests.push(requestOf(row));
  }
  return { name, blockTokens: BLOCK_TOKENS, arrivals: spreadOverTick(requestsAt, seed) };
}

function requestOf(row: TraceRow): WorkloadRequest {
  return {
    promptTokens: row.count("input_length", 1),
    outputTokens: row.count("output_length"),
    blockIds: row.counts("hash_ids"),
    sessionKey: undefined,
    tenant: undefined,
    next: undefined,
  };
}

/**
 * The tick is the smallest step between timestamps, so that none overtakes the next. In a trace in milliseconds
 * some requests are a few ms apart, and nothing moves further than that.
 */
function spreadOverTick(
  requestsAt: ReadonlyMap<number, readonly WorkloadRequest[]>,
  seed: number | undefined,
): Arrival[] {
  const placesOf = seed === undefined ? evenPlaces : drawnPlaces(seededRandom(seed));
  const moments = [...requestsAt].sort(([a], [b]) => a - b);
  const tickMs = smallestStep(moments.map(([atMs]) => atMs));
  return moments.flatMap(([atMs, requests]) => {
    const places = placesOf(requests.length);
    return requests.map((request, index) => ({ atMs: atMs + tickMs * (places[index] as number), request }));
  });
}

/** Places of `count` requests within a tick, 0 to 1, in order. */
type PlacesOf = (count: number) => readonly number[];

const evenPlaces: PlacesOf = (count) => Array.from({ length: count }, (_, index) => index / count);

function drawnPlaces(random: Random): PlacesOf {
  return (count) => Array.from({ length: count }, () => random.next()).sort((a, b) => a - b);
}

/** @param times In order. 0: there is no step. */
function smallestStep(times: readonly number[]): number {
  let smallest = Number.POSITIVE_INFINITY;
  let previous = Number.NEGATIVE_INFINITY;
  for (const time of times) {
    smallest = Math.min(smallest, time - previous);
    previous = time;
  }
  return Number.isFinite(smallest) ? smallest : 0;
}
