import type { Policy } from "../../core/index.ts";
import { waitingRequests } from "./engine-state.ts";
import { holdingPeer, type PeerPolicy, type SpeedOf } from "./peer-policy.ts";
import { OwnIndexes } from "./prefix-knowledge.ts";
import { allHighest, choiceOf, lowest, weighEach } from "./weighed.ts";

/**
 * Selective pushing of SkyWalker (arXiv 2505.24095): a request is pushed only to an endpoint whose engine has no
 * pending request; among them to the longest prefix match, the least busy of those. One region; the pending count is
 * exact and not probed.
 */
export const skywalker: PeerPolicy = holdingPeer("own_hold", {
  name: "skywalker",
  summary: "longest prefix match among the endpoints without pending requests",
  score: "matching prompt tokens, highest wins, then requests in flight",
  create: createSkywalker,
});

function createSkywalker(speedOf: SpeedOf): Policy {
  const indexes = new OwnIndexes();
  return {
    routed: (event) => indexes.routed(event),
    hasRoom: (_request, candidate) => waitingRequests(candidate) === 0,
    choose(request, candidates, { random }) {
      const weighed = weighEach(candidates, (candidate) => ({
        matchedTokens: indexes.matchedTokens(request, candidate),
        requests: candidate.account.requests / speedOf(candidate),
      }));
      const matched = ({ matchedTokens }: { matchedTokens: number }) => matchedTokens;
      const chosen = lowest(allHighest(weighed, matched), ({ requests }) => requests, random);
      return choiceOf(chosen, weighed, matched, "longest match without pending requests");
    },
  };
}
