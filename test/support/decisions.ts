import type { Balancer, Decision, RequestProfile, Routed } from "../../src/core/index.ts";

/** The decision of a balancer that a test knows to route at once. */
export function routedNow(
  balancer: Balancer,
  request: RequestProfile,
  nowMs: number,
  tried: readonly string[] = [],
): Routed {
  return mustBeRouted(balancer.decide(request, nowMs, tried));
}

/** `decision`, which the test knows to be routed. */
export function mustBeRouted(decision: Decision): Routed {
  if (decision.kind !== "routed") throw new Error(`${decision.kind}: ${decision.explanation.reason}`);
  return decision;
}
