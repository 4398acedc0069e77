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
  /** By candidate: see `Candidate.kvTokens`. */
  readonly kvTokens: number[] = [];
  /** What there is to compute of the prompt where most of it is cached. */
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
    const promptTokens = Math.ceil(request.promptTokens);
    let mostCachedTokens = 0;
    let kvUsed = 0;
    let computeUsed = 0;
    // One pass: in a large fleet the way through the memory of all candidates is most of what a decision costs.
    for (let i = 0; i < candidates.length; i++) {
      const candidate = candidates[i] as Candidate;
      const { account, coefficients, kvTokens, kvCapacityTokens = Number.POSITIVE_INFINITY } = candidate;
      const cachedTokens = candidate.cachedTokens(request);
      this.kvTokens[i] = kvTokens;
      this.prefillTokens[i] = uncachedTokens(promptTokens, cachedTokens);
      mostCachedTokens = Math.max(mostCachedTokens, cachedTokens);
      kvUsed += Math.min(1, kvTokens / kvCapacityTokens);
      computeUsed += account.runningRequests / coefficients.fullBatch;
    }
    const best = costOf(request, mostCachedTokens);
    this.promptTokens = best.promptTokens;
    this.decodeTokens = best.decodeTokens;
    this.leastPrefillTokens = best.prefillTokens;
    this.leastPrefillPairs = best.prefillPairs;
    this.sparing = sparingOf(kvUsed / candidates.length, computeUsed / candidates.length);
    this.nowMs = context.nowMs;
    this.arrivedAtMs = context.arrivedAtMs;
    this.urgency = context.urgency;
    this.place = context.place;
  }
}

/**
 * How much running requests are spared a newcomer, 1 to 0, by the means over the fleet of how much of the KV caches
 * requests in flight take, and of how full decode batches are. Sparing them keeps short answers and long
 * prompts apart, which pays while memory and compute are at hand; once the fleet's KV caches or its
 * decode batches fill up, keeping them even is worth more.
 */
function sparingOf(meanKvUse: number, meanComputeUse: number): number {
  return fade(meanKvUse, 0.6, 0.9) * fade(meanComputeUse, 0.6, 1);
}

/** 1 up to `start`, 0 from `end` on, a straight line between. */
function fade(value: number, start: number, end: number): number {
  return Math.min(1, Math.max(0, (end - value) / (end - start)));
}
