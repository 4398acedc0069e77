import type { EngineSignals } from "../core/index.ts";

/** What an engine without metrics reports. */
export function noSignals(_text: string, observedAtMs: number): EngineSignals {
  return {
    observedAtMs,
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
  };
}
