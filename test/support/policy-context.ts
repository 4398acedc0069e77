import { type PolicyContext, seededRandom } from "../../src/core/index.ts";

/** What a policy is told besides request and candidates: a request that has just come, unless `known` says more. */
export function policyContext(known: Partial<PolicyContext> = {}): PolicyContext {
  const { nowMs = 0, random = seededRandom(1), urgency = 0 } = known;
  return { nowMs, random, arrivedAtMs: known.arrivedAtMs ?? nowMs, urgency, place: known.place };
}
