import { z } from "zod";
import type { Candidate, Candidates, Choice, Considered, Policy, PolicyDefinition } from "../policy.ts";
import { leastBy } from "../select.ts";
import { leastDelayBinding } from "./least-delay-binding.ts";
import { Placing } from "./least-delay-placing.ts";
import { PRICE_LENGTH, readPrice, totalMs, writePrice } from "./least-delay-price.ts";

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
  const placing = new Placing();
  /** Of the request that is being placed, written over with each: see `writePrice`. */
  const prices: number[] = [];
  /** By candidate: the sum of each. */
  const totals: number[] = [];
  const totalAt = (_candidate: Candidate, i: number): number => totals[i] as number;
  return {
    ...(isLate ? { lateBinding: leastDelayBinding(tpotTargetMs) } : {}),
    choose(request, candidates, context) {
      placing.begin(request, candidates, context);
      const length = candidates.length * PRICE_LENGTH;
      // Room first: to write past the end of a list costs more than to write into it.
      while (prices.length < length) prices.push(Number.NaN);
      for (let i = 0; i < candidates.length; i++) {
        writePrice(prices, totals, placing, candidates[i] as Candidate, i);
      }
      const chosen = leastBy(candidates, totalAt, context.random);
      return new LeastDelayChoice(chosen, candidates, prices.slice(0, length));
    },
  };
}

/** A choice that writes its explanation out when it is asked for: of most decisions nobody asks. */
class LeastDelayChoice implements Choice {
  readonly chosen: Candidate;
  readonly reason = "least delay to it and to the others";
  readonly #candidates: Candidates;
  readonly #prices: readonly number[];

  constructor(chosen: Candidate, candidates: Candidates, prices: readonly number[]) {
    this.chosen = chosen;
    this.#candidates = candidates;
    this.#prices = prices;
  }

  get considered(): readonly Considered[] {
    return this.#candidates.map(({ endpoint }, i) => {
      const terms = readPrice(this.#prices, i);
      return { endpoint: endpoint.id, score: totalMs(terms), terms };
    });
  }
}

/**
 * Prefill sent at once. A step of a long prompt takes longer, and then nothing is gained by sending two; in this time
 * ten prompts of 500 tokens are computed by an 8B model on one H100, more than pay to share a step.
 */
const MAX_PREFILL_MS = 100;
