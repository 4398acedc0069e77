import type { EngineSignals } from "../../src/core/index.ts";

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
