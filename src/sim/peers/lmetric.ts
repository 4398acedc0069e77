import type { Candidates, Choice, PolicyContext, RequestProfile } from "../../core/index.ts";
import { type PeerPolicy, plainPeer, type SpeedOf } from "./peer-policy.ts";
import { OwnIndexes, type PrefixKnowledge, uncachedTokens } from "./prefix-knowledge.ts";
import { chooseLowest, weighEach } from "./weighed.ts";

/**
 * LMetric (arXiv 2603.15202): prefill tokens, pending and of the request, times the batch size; the lowest wins. No
 * factor is ever 0: the batch counts the request itself, so that idle endpoints are told apart by what they have
 * cached, and the last prompt token is always computed.
 */
export const lmetric: PeerPolicy = plainPeer({
  name: "lmetric",
  summary: "prefill tokens to do times batch size",
  score: "prefill tokens x requests, the request itself included; lowest wins",
  create: (speedOf) => {
    const indexes = new OwnIndexes();
    return {
      routed: (event) => indexes.routed(event),
      choose: (...asked) => chooseLmetric(indexes, speedOf, ...asked),
    };
  },
});

/** The choice of LMetric. */
export function chooseLmetric(
  knowledge: PrefixKnowledge,
  speedOf: SpeedOf,
  request: RequestProfile,
  candidates: Candidates,
  { random }: PolicyContext,
): Choice {
  const weighed = weighEach(candidates, (candidate) => {
    const { account } = candidate;
    const prefillTokens = account.waitingPrefillTokens + Math.max(1, uncachedTokens(knowledge, request, candidate));
    return { prefillTokens: prefillTokens / speedOf(candidate), requests: account.requests + 1 };
  });
  const product = (figures: { prefillTokens: number; requests: number }) => figures.prefillTokens * figures.requests;
  return chooseLowest(weighed, product, random, "lowest product of prefill and batch");
}
