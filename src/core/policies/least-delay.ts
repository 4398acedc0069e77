import { z } from "zod";
import { costOf } from "../cost.ts";
import type { Candidate, Considered, Policy, PolicyContext, PolicyDefinition } from "../policy.ts";
import type { RequestProfile } from "../request.ts";
import { leastBy } from "../select.ts";
import { leastDelayBinding } from "./least-delay-binding.ts";
import { type Placement, priceOf, sparing, totalMs } from "./least-delay-price.ts";

const options = z.strictObject({
  lateBinding: z
    .boolean()
    .default(true)
    .describe("Hold a request until its endpoint can begin on it; false: every request is sent as soon as it comes."),
  tpotTargetMs: z
    .number()
    .min(1)
    .max(10_000)
    .optional()
    .describe(
      "Time per output token that answers should keep, in ms: an endpoint is then sent no more prefill at once. Without it, 100 ms of prefill.",
    ),
});

type Options = z.output<typeof options>;

/**
 * Least delay to everyone: the request's own wait and decoding, and what it does to the requests that
 * run and wait there. In ms, by a model of the engine whose speed is learned, so mixed hardware needs
 * no weights. The default.
 */
export const leastDelay: PolicyDefinition = {
  name: "least_delay",
  summary: "least delay to the request and to those already there; held until its endpoint can begin on it",
  score: "price in ms, lowest wins",
  options,
  create: createLeastDelay,
};

function createLeastDelay({ lateBinding: isLate, tpotTargetMs = MAX_PREFILL_MS }: Options): Policy {
  const binding = leastDelayBinding(tpotTargetMs);
  /** Its place among those held for the candidate: where it is held, as it was put there, so that it is not ahead of itself. */
  const keyAt = (candidate: Candidate, request: RequestProfile, { arrivedAtMs, place }: PolicyContext): number => {
    if (place?.endpointId === candidate.endpoint.id) return place.key;
    return candidate.held.requests === 0 ? arrivedAtMs : binding.holdKey(request, candidate, arrivedAtMs);
  };
  return {
    ...(isLate ? { lateBinding: binding } : {}),
    choose(request, candidates, context) {
      let mostCachedTokens = 0;
      const placements = mapEach(candidates, (candidate): Placement => {
        const cachedTokens = candidate.cachedTokens(request);
        mostCachedTokens = Math.max(mostCachedTokens, cachedTokens);
        const cost = costOf(request, cachedTokens);
        const key = keyAt(candidate, request, context);
        return { candidate, engine: candidate.speed.coefficients, cost, key, urgency: context.urgency };
      });
      const fleet = { bestCost: costOf(request, mostCachedTokens), sparing: sparing(placements) };
      const priced = mapEach(placements, (placement): Priced => {
        const terms = priceOf(placement, fleet, context.nowMs);
        const { candidate } = placement;
        return { candidate, considered: { endpoint: candidate.endpoint.id, score: totalMs(terms), terms } };
      });
      return {
        chosen: leastBy(priced, ({ considered }) => considered.score, context.random).candidate,
        considered: priced.map(({ considered }) => considered),
        reason: "least delay to it and to the others",
      };
    },
  };
}

/**
 * Prefill sent at once. A step of a long prompt takes longer, and then nothing is gained by sending two; in this time
 * ten prompts of 500 tokens are computed by an 8B model on one H100, more than pay to share a step.
 */
const MAX_PREFILL_MS = 100;

interface Priced {
  readonly candidate: Candidate;
  readonly considered: Considered;
}

/** `map` of a list that is not empty is not empty either. */
function mapEach<In, Out>([first, ...rest]: readonly [In, ...In[]], map: (item: In) => Out): [Out, ...Out[]] {
  return [map(first), ...rest.map(map)];
}
