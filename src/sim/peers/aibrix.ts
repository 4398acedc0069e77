import type { Policy } from "../../core/index.ts";
import { type PeerPolicy, plainPeer, type SpeedOf } from "./peer-policy.ts";
import { OwnIndexes } from "./prefix-knowledge.ts";
import { type AllWeighed, allHighest, choiceOf, chooseLowest, lowest, some, weighEach } from "./weighed.ts";

/** Counts further apart than this are an imbalance, whatever is cached. */
const IMBALANCED_REQUESTS = 8;

/** An endpoint this many standard deviations above the mean is too busy to follow a match. */
const BUSY_DEVIATIONS = 1;

/**
 * The prefix-cache routing of AIBrix, from the README of its gateway's routing algorithms: imbalanced, the fewest
 * requests; else the best match among those not busier than a standard deviation above the mean, and the fewest
 * requests where nothing matches.
 */
export const aibrixPrefixCache: PeerPolicy = plainPeer({
  name: "aibrix_prefix_cache",
  summary: "best prefix match that is not too busy, else fewest requests",
  score: "match: share of the prompt, highest wins; else requests in flight, lowest wins",
  create: createPrefixCache,
});

type Figures = { readonly requests: number; readonly matchedShare: number };

function createPrefixCache(speedOf: SpeedOf): Policy {
  const indexes = new OwnIndexes();
  return {
    routed: (event) => indexes.routed(event),
    choose(request, candidates, { random }) {
      const weighed = weighEach(
        candidates,
        (candidate): Figures => ({
          requests: candidate.account.requests / speedOf(candidate),
          matchedShare: indexes.matchedShare(request, candidate),
        }),
      );
      const { isImbalanced, busyRequests } = balanceOf(weighed);
      const fewest = ({ requests }: Figures): number => requests;
      if (isImbalanced) return chooseLowest(weighed, fewest, random, "imbalanced: fewest requests");
      const matching = some(weighed, (it) => it.matchedShare > 0 && it.requests <= busyRequests);
      if (matching === undefined) return chooseLowest(weighed, fewest, random, "no match: fewest requests");
      const share = ({ matchedShare }: Figures): number => matchedShare;
      return choiceOf(lowest(allHighest(matching, share), fewest, random), weighed, share, "best prefix match");
    },
  };
}

function balanceOf(weighed: AllWeighed<Figures>): { readonly isImbalanced: boolean; readonly busyRequests: number } {
  const counts = weighed.map(({ figures }) => figures.requests);
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const variance = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / counts.length;
  return {
    isImbalanced: Math.max(...counts) - Math.min(...counts) > IMBALANCED_REQUESTS,
    busyRequests: mean + BUSY_DEVIATIONS * Math.sqrt(variance),
  };
}
