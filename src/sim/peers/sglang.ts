import type { Policy } from "../../core/index.ts";
import { type PeerPolicy, plainPeer, type SpeedOf } from "./peer-policy.ts";
import { OwnIndexes } from "./prefix-knowledge.ts";
import { allHighest, choiceOf, chooseLowest, lowest, weighEach } from "./weighed.ts";

interface Thresholds {
  /** A smaller match is not followed. */
  readonly cacheShare: number;
  /** Imbalanced: the counts in flight lie further apart than this, */
  readonly balanceCount: number;
  /** and the largest is above this multiple of the smallest. */
  readonly balanceRatio: number;
}

/**
 * The cache_aware policy of the SGLang router (now SMG, the SGLang model gateway), as its load balancing documentation
 * states it: while the counts in flight are balanced, the best prefix match if it is long enough, else the endpoint
 * with the smallest tree; imbalanced, the shortest queue. Twice, since the library's defaults and those of its command
 * line differ.
 */
export const sglangPeers: readonly PeerPolicy[] = [
  cacheAware("sglang_cache_aware", { cacheShare: 0.5, balanceCount: 32, balanceRatio: 1.1 }),
  cacheAware("sglang_cache_aware_cli", { cacheShare: 0.3, balanceCount: 64, balanceRatio: 1.5 }),
];

function cacheAware(name: string, thresholds: Thresholds): PeerPolicy {
  const { cacheShare, balanceCount, balanceRatio } = thresholds;
  return plainPeer({
    name,
    summary: `best prefix match above ${cacheShare}, else smallest tree; shortest queue when imbalanced by ${balanceCount} and ${balanceRatio}x`,
    score:
      "imbalanced: requests in flight, lowest wins; match: share, highest wins; else tokens in the tree, lowest wins",
    create: (speedOf) => createCacheAware(thresholds, speedOf),
  });
}

function createCacheAware({ cacheShare, balanceCount, balanceRatio }: Thresholds, speedOf: SpeedOf): Policy {
  const indexes = new OwnIndexes();
  return {
    routed: (event) => indexes.routed(event),
    choose(request, candidates, { random }) {
      const weighed = weighEach(candidates, (candidate) => ({
        requests: candidate.account.requests / speedOf(candidate),
        matchedShare: indexes.matchedShare(request, candidate),
        treeTokens: indexes.of(candidate).tokens,
      }));
      let most = 0;
      let fewest = Number.POSITIVE_INFINITY;
      for (const { figures } of weighed) {
        most = Math.max(most, figures.requests);
        fewest = Math.min(fewest, figures.requests);
      }
      if (most - fewest > balanceCount && most > balanceRatio * fewest) {
        return chooseLowest(weighed, ({ requests }) => requests, random, "imbalanced: shortest queue");
      }
      const matching = allHighest(weighed, ({ matchedShare }) => matchedShare);
      if (matching[0].figures.matchedShare > cacheShare) {
        const chosen = lowest(matching, ({ requests }) => requests, random);
        return choiceOf(chosen, weighed, ({ matchedShare }) => matchedShare, "best prefix match");
      }
      return chooseLowest(weighed, ({ treeTokens }) => treeTokens, random, "no match long enough: smallest tree");
    },
  };
}
