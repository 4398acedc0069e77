import { costOf } from "../../core/index.ts";
import { type PeerPolicy, plainPeer } from "./peer-policy.ts";
import { OwnIndexes } from "./prefix-knowledge.ts";
import { chooseLowest, weighEach } from "./weighed.ts";

/**
 * The cache-aware choice of Mooncake's Conductor (arXiv 2407.00079, algorithm 1): the shortest time to the first
 * token, queue plus prefill of what is not cached. No transfer of caches between endpoints and no rejection, which
 * need its storage pool. Its offline fit of prefill times is the endpoint's learned speed, so a mixed fleet needs no
 * other scaling.
 */
export const mooncakeConductor: PeerPolicy = plainPeer({
  name: "mooncake_conductor",
  summary: "shortest queue and prefill time, cache counted",
  score: "ms to the first token, lowest wins",
  create: () => {
    const indexes = new OwnIndexes();
    return {
      routed: (event) => indexes.routed(event),
      choose(request, candidates, { random }) {
        const weighed = weighEach(candidates, (candidate) => {
          const { account, speed } = candidate;
          const { prefillTokens, prefillPairs } = costOf(request, indexes.cachedTokens(request, candidate));
          return {
            queueMs: speed.prefillMs(account.waitingPrefillTokens, account.waitingPrefillPairs),
            prefillMs: speed.prefillMs(prefillTokens, prefillPairs),
          };
        });
        const timeToFirstToken = (ms: { queueMs: number; prefillMs: number }) => ms.queueMs + ms.prefillMs;
        return chooseLowest(weighed, timeToFirstToken, random, "shortest time to the first token");
      },
    };
  },
});
