import type { Balancer, EngineSignals } from "../../src/core/index.ts";

/** What an engine reports that says no more than `known`. */
export function engineSignals(known: Partial<EngineSignals> = {}): EngineSignals {
  return {
    observedAtMs: 0,
    runningRequests: undefined,
    waitingRequests: undefined,
    maxRunningRequests: undefined,
    kvUsedRatio: undefined,
    kvCapacityTokens: undefined,
    kvBlockTokens: undefined,
    promptTokensTotal: undefined,
    generatedTokensTotal: undefined,
    prefixHitTokensTotal: undefined,
    prefixQueryTokensTotal: undefined,
    preemptionsTotal: undefined,
    ...known,
  };
}

/** Every endpoint tells of its batch, as engines do that serve in turn. */
export function reportBatches(balancer: Balancer, nowMs = 0): void {
  for (const { endpoint } of balancer.members) {
    const signals = engineSignals({ observedAtMs: nowMs, runningRequests: 0 });
    balancer.observe({ kind: "signals", endpointId: endpoint.id, signals }, nowMs);
  }
}
