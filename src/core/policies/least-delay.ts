import { z } from "zod";
import { costOf } from "../cost.ts";
import type { Candidate, Considered, Policy, PolicyDefinition } from "../policy.ts";
import { leastBy } from "../select.ts";
import { type Placement, priceOf, sparing, totalMs } from "./least-delay-price.ts";

/**
 * Least delay to everyone: the request's own wait and decoding, and what it does to the requests that
 * run and wait there. In ms, by a model of the engine whose speed is learned, so mixed hardware needs
 * no weights. The default.
 */
export const leastDelay: PolicyDefinition = {
  name: "least_delay",
  summary: "least delay to the request and to those already there",
  score: "price in ms, lowest wins",
  options: z.strictObject({}),
  create: createLeastDelay,
};

function createLeastDelay(): Policy {
  return {
    choose(request, candidates, { nowMs, random }) {
      let mostCachedTokens = 0;
      const placements = mapEach(candidates, (candidate): Placement => {
        const cachedTokens = candidate.cachedTokens(request);
        mostCachedTokens = Math.max(mostCachedTokens, cachedTokens);
        return { candidate, engine: candidate.speed.coefficients, cost: costOf(request, cachedTokens) };
      });
      const fleet = { bestCost: costOf(request, mostCachedTokens), sparing: sparing(placements) };
      const priced = mapEach(placements, (placement): Priced => {
        const terms = priceOf(placement, fleet, nowMs);
        const { candidate } = placement;
        return { candidate, considered: { endpoint: candidate.endpoint.id, score: totalMs(terms), terms } };
      });
      return {
        chosen: leastBy(priced, ({ considered }) => considered.score, random).candidate,
        considered: priced.map(({ considered }) => considered),
        reason: "least delay to it and to the others",
      };
    },
  };
}

interface Priced {
  readonly candidate: Candidate;
  readonly considered: Considered;
}

/** `map` of a list that is not empty is not empty either. */
function mapEach<In, Out>([first, ...rest]: readonly [In, ...In[]], map: (item: In) => Out): [Out, ...Out[]] {
  return [map(first), ...rest.map(map)];
}
