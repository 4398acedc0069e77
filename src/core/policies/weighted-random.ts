import { z } from "zod";
import type { Candidate, Policy, PolicyDefinition } from "../policy.ts";
import { sample } from "../select.ts";
import { workSeconds } from "./work-seconds.ts";

/**
 * About what an engine filled by chat holds, so busy endpoints show as busy. Longer, and an endpoint that
 * falls behind is drawn almost as before; shorter, and on a busy fleet nothing is ever free.
 */
const DEFAULT_HORIZON_SECONDS = 10;

const options = z.strictObject({
  horizonSeconds: z
    .number()
    .min(0.1)
    .max(3600)
    .default(DEFAULT_HORIZON_SECONDS)
    .describe("Seconds of work, at an endpoint's capacity, from which nothing of it is free."),
});

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
