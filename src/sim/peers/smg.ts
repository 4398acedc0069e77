import type { Candidates, Policy, Random, RequestProfile } from "../../core/index.ts";
import { kvUsedRatio } from "./engine-state.ts";
import { HashRing } from "./hash-ring.ts";
import { headKey } from "./kubeai.ts";
import { type PeerPolicy, plainPeer, type SpeedOf } from "./peer-policy.ts";
import { choiceOf, chooseLowest, lowest, some, weighEach } from "./weighed.ts";

/** Of the least_load policy. */
const DEFAULT_TOKENS_PER_SECOND = 2000;
const KV_WEIGHT = 0.15;
/** k / (1 - k) has no value at 1. */
const MAX_KV_RATIO = 0.999;

/** Of the prefix_hash policy. */
const HEAD_TOKENS = 256;
const LOAD_FACTOR = 1.25;
const VIRTUAL_NODES = 256;

/** Load policies of SMG, the SGLang model gateway, from its load balancing documentation. */
export const smgPeers: readonly PeerPolicy[] = [
  plainPeer({
    name: "smg_least_load",
    summary: "shortest queue in seconds at 2,000 tokens/s, plus 0.15 k/(1 - k) for the KV usage k",
    score: "seconds of queue and the penalty of KV usage, lowest wins",
    create: createLeastLoad,
  }),
  plainPeer({
    name: "smg_power_of_two",
    summary: "the one of two drawn endpoints that uses less of its KV cache",
    score: "KV usage, lowest wins, then requests in flight; of the two that were drawn",
    create: createPowerOfTwo,
  }),
  plainPeer({
    name: "smg_prefix_hash",
    summary: "ring of the first 256 prompt tokens; the least loaded when that one is above 1.25 of the mean",
    score: "requests in flight over the mean, lowest wins unless the ring's own is at or below 1.25",
    create: createPrefixHash,
  }),
];

function createLeastLoad(speedOf: SpeedOf): Policy {
  return {
    choose(_request, candidates, { random }) {
      const weighed = weighEach(candidates, (candidate) => {
        const kvRatio = Math.min(MAX_KV_RATIO, kvUsedRatio(candidate));
        return {
          queueSeconds: candidate.account.waitingPromptTokens / (DEFAULT_TOKENS_PER_SECOND * speedOf(candidate)),
          kvPenalty: (KV_WEIGHT * kvRatio) / (1 - kvRatio),
        };
      });
      const score = (figures: { queueSeconds: number; kvPenalty: number }) => figures.queueSeconds + figures.kvPenalty;
      return chooseLowest(weighed, score, random, "least load");
    },
  };
}

function createPowerOfTwo(speedOf: SpeedOf): Policy {
  return {
    choose(_request, candidates, { random }) {
      const weighed = weighEach(drawPair(candidates, random), (candidate) => ({
        kvRatio: kvUsedRatio(candidate),
        requests: candidate.account.requests / speedOf(candidate),
      }));
      const least = lowest(weighed, ({ kvRatio }) => kvRatio, random).figures.kvRatio;
      const tied = some(weighed, ({ kvRatio }) => kvRatio === least) ?? weighed;
      const chosen = lowest(tied, ({ requests }) => requests, random);
      return choiceOf(chosen, weighed, ({ kvRatio }) => kvRatio, "less KV usage of two drawn");
    },
  };
}

/** Two different candidates, every pair with the same chance; the only one when there are no two. */
function drawPair(candidates: Candidates, random: Random): Candidates {
  const first = Math.floor(random.next() * candidates.length);
  const step = 1 + Math.floor(random.next() * (candidates.length - 1));
  const [one = candidates[0], ...other] = candidates.filter(
    (_, index) => index === first || index === (first + step) % candidates.length,
  );
  return [one, ...other];
}

function createPrefixHash(speedOf: SpeedOf): Policy {
  const ring = new HashRing(VIRTUAL_NODES);
  return {
    choose(request, candidates, { random }) {
      let total = 0;
      let speeds = 0;
      for (const candidate of candidates) {
        total += candidate.account.requests;
        speeds += speedOf(candidate);
      }
      const weighed = weighEach(candidates, (candidate) => ({
        loadOverMean: total === 0 ? 0 : (candidate.account.requests * speeds) / (total * speedOf(candidate)),
      }));
      const score = ({ loadOverMean }: { loadOverMean: number }) => loadOverMean;
      const own = ring.find(headKey(request, headDepth(request), random), candidates, () => true);
      const preferred = weighed.find(({ candidate }) => candidate === own);
      if (preferred !== undefined && preferred.figures.loadOverMean <= LOAD_FACTOR) {
        return choiceOf(preferred, weighed, score, "the ring's own");
      }
      return chooseLowest(weighed, score, random, "the ring's own is overloaded: least loaded");
    },
  };
}

/** The block in which the head ends. */
function headDepth({ prefix }: RequestProfile): number {
  return prefix === undefined ? 0 : Math.max(0, Math.ceil(HEAD_TOKENS / Math.max(1, prefix.tokensPerBlock)) - 1);
}
