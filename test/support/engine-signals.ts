import { type Balancer, type EngineSignals, type Release, unknownSignals } from "../../src/core/index.ts";

/** What an engine reports that says no more than `known`. */
export function engineSignals(known: Partial<EngineSignals> = {}): EngineSignals {
  return { ...unknownSignals(0), ...known };
}

/** Every endpoint tells of its batch, as engines do that serve in turn. */
export function reportBatches(balancer: Balancer, nowMs = 0): readonly Release[] {
  return balancer.members.flatMap(({ endpoint }) => {
    const signals = engineSignals({ observedAtMs: nowMs, runningRequests: 0 });
    return balancer.observe({ kind: "signals", endpointId: endpoint.id, signals }, nowMs);
  });
}
