import { costOf, uncachedTokens } from "../cost.ts";
import type { Candidate, Candidates, PolicyContext } from "../policy.ts";
import type { RequestProfile } from "../request.ts";
import type { HoldingPlace } from "../ticket.ts";

/**
 * A request that is being placed: what its prices at all candidates have in common. One object serves request after
 * request: V8 forgets the shape of objects of which none lives while it collects, and throws the code made for them away.
 */
export class Placing {
  promptTokens = 0;
  /** Output tokens expected. */
  decodeTokens = 0;
  /** By candidate: what there is to compute of the prompt. */
  readonly prefillTokens: number[] = [];
  /** The same where most of it is cached. */
  leastPrefillTokens = 0;
  /** Attention pairs of that. */
  leastPrefillPairs = 0;
  /** Weight of sparing running requests, 1 to 0: see `sparingOf`. */
  sparing = 1;
  nowMs = 0;
  arrivedAtMs = 0;
  urgency = 0;
  /** Where it is held at this moment; undefined: nowhere. */
  place: HoldingPlace | undefined;

  begin(request: RequestProfile, candidates: Candidates, context: PolicyContext): void {
    let mostCachedTokens = 0;
    for (let i = 0; i < candidates.length; i++) {
      const cachedTokens = (candidates[i] as Candidate).cachedTokens(request);
      this.prefillTokens[i] = uncachedTokens(request, cachedTokens);
      mostCachedTokens = Math.max(mostCachedTokens, cachedTokens);
    }
    const best = costOf(request, mostCachedTokens);
    this.promptTokens = best.promptTokens;
    this.decodeTokens = best.decodeTokens;
    this.leastPrefillTokens = best.prefillTokens;
    this.leastPrefillPairs = best.prefillPairs;
    this.sparing = sparingOf(candidates);
    this.nowMs = context.nowMs;
    this.arrivedAtMs = context.arrivedAtMs;
    this.urgency = context.urgency;
    this.place = context.place;
  }
}

/**
 * How much running requests are spared a newcomer, 1 to 0. Sparing them keeps short answers and long
 * prompts apart, which pays while memory and compute are at hand; once the fleet's KV caches or its
 * decode batches fill up, keeping them even is worth more.
 */
function sparingOf(candidates: Candidates): number {
  let kvUsed = 0;
  let computeUsed = 0;
  for (const { account, speed, kvCapacityTokens, kvTokens } of candidates) {
    if (kvCapacityTokens !== undefined) kvUsed += Math.min(1, kvTokens / kvCapacityTokens);
    const { computeMs, weightsMs } = speed.coefficients;
    computeUsed += (computeMs * account.runningRequests) / weightsMs;
  }
  return fade(kvUsed / candidates.length, 0.6, 0.9) * fade(computeUsed / candidates.length, 0.6, 1);
}

/** 1 up to `start`, 0 from `end` on, a straight line between. */
function fade(value: number, start: number, end: number): number {
  return Math.min(1, Math.max(0, (end - value) / (end - start)));
}
