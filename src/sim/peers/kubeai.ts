import type { Policy, Random, RequestProfile } from "../../core/index.ts";
import { HashRing } from "./hash-ring.ts";
import { type PeerPolicy, plainPeer, type SpeedOf } from "./peer-policy.ts";
import { choiceOf, lowest, weighEach } from "./weighed.ts";

const VIRTUAL_NODES = 256;
const LOAD_FACTOR = 1.25;

/**
 * The PrefixHash strategy of KubeAI, from its load balancing documentation: consistent hashing with bounded loads
 * (Mirrokni, Thorup, Zadimoghaddam 2018) on the first 100 characters of the prompt. The first block of the prompt
 * stands for them.
 */
export const kubeaiPrefixHash: PeerPolicy = plainPeer({
  name: "kubeai_prefix_hash",
  summary: "ring of prompt heads, 256 points each, loads bounded to 1.25 of the mean",
  score: "requests in flight over the bound; the first on the ring at or below 1 wins",
  create: createPrefixHash,
});

function createPrefixHash(speedOf: SpeedOf): Policy {
  const ring = new HashRing(VIRTUAL_NODES);
  return {
    choose(request, candidates, { random }) {
      let total = 1;
      let speeds = 0;
      for (const candidate of candidates) {
        total += candidate.account.requests;
        speeds += speedOf(candidate);
      }
      const bound = (LOAD_FACTOR * total) / speeds;
      const weighed = weighEach(candidates, (candidate) => ({
        loadOverBound: candidate.account.requests / (bound * speedOf(candidate)),
      }));
      const accepted = new Set(weighed.filter(({ figures }) => figures.loadOverBound <= 1).map((one) => one.candidate));
      const found = ring.find(headKey(request, 0, random), candidates, (candidate) => accepted.has(candidate));
      const chosen =
        weighed.find(({ candidate }) => candidate === found) ??
        lowest(weighed, ({ loadOverBound }) => loadOverBound, random);
      return choiceOf(chosen, weighed, ({ loadOverBound }) => loadOverBound, "next on the ring within the bound");
    },
  };
}

/** Hash of the prompt up to the end of block `depth`, or of the last there is; a prompt without blocks is like no other. */
export function headKey({ prefix }: RequestProfile, depth: number, random: Random): number {
  const hash = prefix?.hashes[Math.min(depth, prefix.hashes.length - 1)];
  return hash ?? Math.floor(random.next() * 2 ** 32);
}
