import type { EndpointSample, RequestRecord, SimulationResult } from "./result.ts";

/**
 * Runs of one policy with several seeds as one, each after the end of the one before: rates stay what they are, and
 * quantiles are those of all requests.
 */
export function joinRuns(runs: readonly [SimulationResult, ...SimulationResult[]]): SimulationResult {
  const [first, ...others] = runs;
  let joined = first;
  let endMs = endOf(first);
  for (const run of others) {
    const later = delayed(run, endMs);
    endMs = endOf(later);
    joined = {
      ...joined,
      requests: [...joined.requests, ...later.requests],
      timeline: {
        atMs: [...joined.timeline.atMs, ...later.timeline.atMs],
        endpoints: appended(joined.timeline.endpoints, later.timeline.endpoints),
      },
      preemptions: joined.preemptions + later.preemptions,
      wallMs: joined.wallMs + later.wallMs,
    };
  }
  return joined;
}

function endOf({ requests, timeline }: SimulationResult): number {
  return requests.reduce(
    (endMs, { arrivedAtMs, endedAtMs = 0 }) => Math.max(endMs, arrivedAtMs, endedAtMs),
    timeline.atMs.at(-1) ?? 0,
  );
}

function delayed(run: SimulationResult, byMs: number): SimulationResult {
  const later = (atMs: number | undefined) => (atMs === undefined ? undefined : atMs + byMs);
  return {
    ...run,
    requests: run.requests.map(
      (request): RequestRecord => ({
        ...request,
        arrivedAtMs: request.arrivedAtMs + byMs,
        sentAtMs: later(request.sentAtMs),
        firstTokenAtMs: later(request.firstTokenAtMs),
        endedAtMs: later(request.endedAtMs),
      }),
    ),
    timeline: { ...run.timeline, atMs: run.timeline.atMs.map((atMs) => atMs + byMs) },
  };
}

type Samples = Readonly<Record<string, readonly EndpointSample[]>>;

function appended(samples: Samples, more: Samples): Samples {
  return Object.fromEntries(Object.entries(samples).map(([id, list]) => [id, [...list, ...(more[id] ?? [])]]));
}
