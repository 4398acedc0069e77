import { z } from "zod";
import type { Policy, PolicyDefinition } from "../policy.ts";
import { sample } from "../select.ts";

/**
 * Any endpoint with the same chance. Keeps no state and looks at nothing, so several balancers need not
 * agree; by luck alone the busiest endpoint carries far more than the mean.
 */
export const random: PolicyDefinition = {
  name: "random",
  summary: "any endpoint with the same chance",
  score: "chance to be drawn",
  options: z.strictObject({}),
  create: createRandom,
};

function createRandom(): Policy {
  return {
    choose(_request, candidates, context) {
      const chance = 1 / candidates.length;
      return {
        chosen: sample(candidates, () => 1, context.random),
        considered: candidates.map(({ endpoint }) => ({ endpoint: endpoint.id, score: chance })),
        reason: "drawn with equal chances",
      };
    },
  };
}
