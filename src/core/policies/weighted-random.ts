import { z } from "zod";
import type { Candidate, Policy, PolicyDefinition } from "../policy.ts";
import { sample } from "../select.ts";
import { horizonSeconds, workSeconds } from "./work-seconds.ts";

const options = z.strictObject({ horizonSeconds });

/**
 * Draws an endpoint in proportion to the capacity it has free. Never piles onto one endpoint, however
 * stale or shared the figures are, so it suits many balancers before one fleet; what it gives away
 * is that a busy endpoint keeps being drawn while an idle one stands by.
 */
export const weightedRandom: PolicyDefinition = {
  name: "weighted_random",
  summary: "drawn in proportion to free capacity",
  score: "chance to be drawn: its part of the fleet's free tokens per second",
  options,
  create: createWeightedRandom,
};

function createWeightedRandom({ horizonSeconds }: z.infer<typeof options>): Policy {
  const capacity = ({ speed }: Candidate): number => speed.tokensPerSecond;
  const free = (candidate: Candidate): number =>
    capacity(candidate) * Math.max(0, 1 - workSeconds(candidate) / horizonSeconds);
  return {
    choose(_request, candidates, { random }) {
      const isAnyFree = candidates.some((candidate) => free(candidate) > 0);
      const weight = isAnyFree ? free : capacity;
      let total = 0;
      for (const candidate of candidates) total += weight(candidate);
      return {
        chosen: sample(candidates, weight, random),
        considered: candidates.map((candidate) => ({
          endpoint: candidate.endpoint.id,
          score: weight(candidate) / total,
          terms: { freeTokensPerSecond: free(candidate) },
        })),
        reason: isAnyFree ? "drawn by free capacity" : "drawn by capacity, nothing is free",
      };
    },
  };
}
