import type { RequestRecord, SimulationResult } from "../../src/sim/index.ts";

/** A request that arrived at 1000 ms, was sent at once, and was answered with 10 tokens: TTFT 100, TPOT 10, E2E 190 ms. */
export function record(changes: Partial<RequestRecord> = {}): RequestRecord {
  return {
    arrivedAtMs: 1000,
    sentAtMs: 1000,
    firstTokenAtMs: 1100,
    endedAtMs: 1190,
    promptTokens: 100,
    outputTokens: 10,
    cachedTokens: 0,
    endpoint: "a",
    tenant: undefined,
    ...changes,
  };
}

/** A request that was never sent. */
export function refusedRecord(): RequestRecord {
  return record({ sentAtMs: undefined, firstTokenAtMs: undefined, endedAtMs: undefined, endpoint: undefined });
}

/** A run of these requests on the endpoints a and b. */
export function resultOf(
  requests: readonly RequestRecord[],
  changes: Partial<SimulationResult> = {},
): SimulationResult {
  return {
    policy: "least_delay",
    workload: "w",
    fleet: "2*f",
    seed: 1,
    requests,
    timeline: { atMs: [], endpoints: { a: [], b: [] } },
    preemptions: 0,
    wallMs: 1,
    ...changes,
  };
}
