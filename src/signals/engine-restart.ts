import type { EngineSignals } from "../core/index.ts";

const COUNTERS = [
  "promptTokensTotal",
  "generatedTokensTotal",
  "prefixHitTokensTotal",
  "prefixQueryTokensTotal",
  "preemptionsTotal",
] as const satisfies readonly (keyof EngineSignals)[];

/** Whether the engine began anew between two scrapes, its cache empty: a counter ran backwards. */
export function hasRestarted(before: EngineSignals, after: EngineSignals): boolean {
  return COUNTERS.some((counter) => {
    const earlier = before[counter];
    const later = after[counter];
    return earlier !== undefined && later !== undefined && later < earlier;
  });
}
