import { z } from "zod";
import type { Candidates, Policy, PolicyDefinition } from "../policy.ts";
import type { Random } from "../random.ts";
import { leastBy } from "../select.ts";
import { workSecondsAfter } from "./work-seconds.ts";

/**
 * Two endpoints drawn at random, the less loaded of them wins. Takes most of what comparing all would
 * gain, and does not herd: balancers that see the same figures still choose apart (Mitzenmacher 2000).
 * With one balancer, comparing all is better.
 */
export const powerOfTwo: PolicyDefinition = {
  name: "power_of_two",
  summary: "the less loaded of two drawn endpoints",
  score: "seconds of work after adding the request, lowest wins; of the two that were drawn",
  options: z.strictObject({}),
  create: createPowerOfTwo,
};

function createPowerOfTwo(): Policy {
  return {
    choose(request, candidates, { random }) {
      const pair = drawPair(candidates, random);
      return {
        chosen: leastBy(pair, (candidate) => workSecondsAfter(request, candidate), random),
        considered: pair.map((candidate) => ({
          endpoint: candidate.endpoint.id,
          score: workSecondsAfter(request, candidate),
        })),
        reason: pair.length === 1 ? "the only candidate" : "less loaded of two drawn",
      };
    },
  };
}

/** Two different candidates, every pair with the same chance; the only one when there are no two. */
function drawPair(candidates: Candidates, random: Random): Candidates {
  const first = Math.floor(random.next() * candidates.length);
  const step = 1 + Math.floor(random.next() * (candidates.length - 1));
  const [one = candidates[0], ...other] = candidates.filter(
    (_, index) => index === first || index === (first + step) % candidates.length,
  );
  return [one, ...other];
}
