import type { Workload, WorkloadRequest } from "./workload.ts";

/** The same requests at `factor` times the rate. Think times stay: a user who waits for answers reads no faster. */
export function scaleRate(workload: Workload, factor: number): Workload {
  return {
    ...workload,
    name: `${workload.name} x${factor}`,
    arrivals: workload.arrivals.map(({ atMs, request }) => ({ atMs: atMs / factor, request })),
  };
}

/** The same sessions with think times divided by `factor`: clients that are programs, on faster machines. */
export function scaleThinking(workload: Workload, factor: number): Workload {
  return {
    ...workload,
    arrivals: workload.arrivals.map(({ atMs, request }) => ({ atMs, request: withThinking(request, factor) })),
  };
}

/** Turn by turn from the last one back: a session may be longer than the stack is deep. */
function withThinking(first: WorkloadRequest, factor: number): WorkloadRequest {
  const turns: WorkloadRequest[] = [];
  for (let turn: WorkloadRequest | undefined = first; turn !== undefined; turn = turn.next?.request) turns.push(turn);
  return turns.reduceRight<WorkloadRequest | undefined>((following, turn) => {
    if (turn.next === undefined || following === undefined) return turn;
    return { ...turn, next: { thinkMs: turn.next.thinkMs / factor, request: following } };
  }, undefined) as WorkloadRequest;
}

/** What arrives before `endMs`, with all that follows from it. */
export function takeUntil(workload: Workload, endMs: number): Workload {
  return { ...workload, arrivals: workload.arrivals.filter(({ atMs }) => atMs < endMs) };
}

/** The first `count` arrivals, with all that follows from them. */
export function takeFirst(workload: Workload, count: number): Workload {
  return { ...workload, arrivals: workload.arrivals.slice(0, count) };
}
