import type { Workload } from "./workload.ts";

/** The same requests at `factor` times the rate. Think times stay: a user who waits for answers reads no faster. */
export function scaleRate(workload: Workload, factor: number): Workload {
  return {
    ...workload,
    name: `${workload.name} x${factor}`,
    arrivals: workload.arrivals.map(({ atMs, request }) => ({ atMs: atMs / factor, request })),
  };
}

/** What arrives before `endMs`, with all that follows from it. */
export function takeUntil(workload: Workload, endMs: number): Workload {
  return { ...workload, arrivals: workload.arrivals.filter(({ atMs }) => atMs < endMs) };
}

/** The first `count` arrivals, with all that follows from them. */
export function takeFirst(workload: Workload, count: number): Workload {
  return { ...workload, arrivals: workload.arrivals.slice(0, count) };
}
