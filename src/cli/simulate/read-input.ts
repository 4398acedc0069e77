import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import {
  formatOf,
  isSyntheticSpec,
  type ReadWorkloadOptions,
  readWorkload,
  syntheticWorkload,
  takeFirst,
  type Workload,
  WorkloadError,
} from "../../sim/index.ts";
import type { InputSettings } from "./settings.ts";

/**
 * Reads the trace, or makes it. Draws, where there are any, are those of `seed`.
 * @throws WorkloadError, or what the file system says.
 */
export function readInput(input: InputSettings, seed: number): Workload {
  const workload = isSyntheticSpec(input.trace) ? synthetic(input, seed) : fromFile(input, seed);
  const taken = input.requests === undefined ? workload : takeFirst(workload, input.requests);
  if (taken.arrivals.length === 0) throw new WorkloadError("no requests in what was asked for");
  return taken;
}

function synthetic(input: InputSettings, seed: number): Workload {
  const { trace } = input;
  const hasSeed = /[:,]\s*seed=/.test(trace);
  const separator = trace.endsWith(":") ? "" : ",";
  const workload = syntheticWorkload(hasSeed ? trace : `${trace}${separator}seed=${seed}`);
  return within({ ...workload, name: trace }, input);
}

function fromFile(input: InputSettings, seed: number): Workload {
  const bytes = readBytes(input.trace);
  const name = input.trace.slice(input.trace.lastIndexOf("/") + 1);
  const format = formatOf(linesOf(bytes).next().value ?? "");
  const options: ReadWorkloadOptions = {
    name,
    sessions: input.sessions,
    sessionGapMs: input.sessionGapMs,
    model: input.model,
    ...(format === "weka" && { seed }),
    ...(format === "servegen" && { seed, startS: seconds(input.startMs), durationS: seconds(input.durationMs) }),
  };
  const workload = readWorkload(linesOf(bytes), options);
  // Profiles are drawn from for the time that is wanted; other traces are cut to it.
  return format === "servegen" ? workload : within(workload, input);
}

function readBytes(path: string): Buffer {
  const bytes = readFileSync(path);
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return isGzip ? gunzipSync(bytes) : bytes;
}

/** A trace may be larger than the longest string. */
function* linesOf(bytes: Buffer): Generator<string, undefined> {
  for (let start = 0; start < bytes.length; ) {
    const lineBreak = bytes.indexOf("\n", start);
    const end = lineBreak === -1 ? bytes.length : lineBreak;
    yield bytes.toString("utf8", start, end);
    start = end + 1;
  }
}

function within(workload: Workload, { startMs = 0, durationMs = Number.POSITIVE_INFINITY }: InputSettings): Workload {
  if (startMs === 0 && durationMs === Number.POSITIVE_INFINITY) return workload;
  const arrivals = workload.arrivals
    .filter(({ atMs }) => atMs >= startMs && atMs < startMs + durationMs)
    .map(({ atMs, request }) => ({ atMs: atMs - startMs, request }));
  return { ...workload, arrivals };
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}
