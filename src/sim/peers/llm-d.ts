import type { Candidate, Candidates, Choice, PolicyContext, RequestProfile } from "../../core/index.ts";
import { kvUsedRatio, waitingRequests } from "./engine-state.ts";
import { holdingPeer, type PeerPolicy, plainPeer, type SpeedOf } from "./peer-policy.ts";
import { OwnIndexes } from "./prefix-knowledge.ts";
import { choiceOf, lowest, some, weighEach } from "./weighed.ts";

interface Weights {
  readonly prefix: number;
  readonly kv: number;
  readonly queue: number;
}

/** Of the saturation detector: waiting requests and share of the KV cache at which an endpoint is full. */
const QUEUE_LIMIT = 5;
const KV_LIMIT = 0.8;

/**
 * Weighted scorers of llm-d and the Gateway API Inference Extension, as their scorer pages state them: prefix match,
 * free KV cache and min-max queue length, each 0 to 1; the highest weighted sum wins.
 */
export const llmDPeers: readonly PeerPolicy[] = [
  weighted({ prefix: 2, kv: 1, queue: 1 }),
  weighted({ prefix: 2, kv: 4, queue: 1 }),
  weighted({ prefix: 4, kv: 4, queue: 1 }),
];

/**
 * Flow control of the llm-d router with its utilization detector, as the detector's page states it: requests wait in
 * order of arrival while the mean over the pool of max(waiting / 5, KV usage / 0.8) is 1 or more. The same limits take
 * single endpoints out of the choice, unless that leaves none. Weights of the sample configuration, 2:1:1.
 */
export const llmDFlowControl: PeerPolicy = holdingPeer("own_hold", {
  name: "llm_d_flow_control",
  summary: "weighted scorers 2:1:1 behind a line that waits while the pool is saturated",
  score: "weighted sum of prefix match, free KV cache and queue, highest wins",
  create: (speedOf) => {
    const scorers = new Scorers({ prefix: 2, kv: 1, queue: 1 }, speedOf);
    const saturation = (candidate: Candidate): number =>
      Math.max(waitingRequests(candidate) / speedOf(candidate) / QUEUE_LIMIT, kvUsedRatio(candidate) / KV_LIMIT);
    return {
      routed: (event) => scorers.indexes.routed(event),
      hasRoom: (_request, _candidate, pool) => pool.reduce((sum, each) => sum + saturation(each), 0) < pool.length,
      choose: (request, candidates, context) =>
        scorers.choose(request, candidates, context, (candidate) => saturation(candidate) <= 1),
    };
  },
});

function weighted(weights: Weights): PeerPolicy {
  const { prefix, kv, queue } = weights;
  return plainPeer({
    name: `llm_d_${prefix}_${kv}_${queue}`,
    summary: `weighted scorers prefix ${prefix}, KV ${kv}, queue ${queue}`,
    score: "weighted sum of prefix match, free KV cache and queue, highest wins",
    create: (speedOf) => {
      const scorers = new Scorers(weights, speedOf);
      return {
        routed: (event) => scorers.indexes.routed(event),
        choose: (request, candidates, context) => scorers.choose(request, candidates, context, () => true),
      };
    },
  });
}

type Scores = { readonly prefix: number; readonly kv: number; readonly queue: number; readonly isFull: number };

class Scorers {
  readonly indexes = new OwnIndexes();
  readonly #weights: Weights;
  readonly #speedOf: SpeedOf;

  constructor(weights: Weights, speedOf: SpeedOf) {
    this.#weights = weights;
    this.#speedOf = speedOf;
  }

  /** Among those that `fits`; among all, if none does. */
  choose(
    request: RequestProfile,
    candidates: Candidates,
    { random }: PolicyContext,
    fits: (candidate: Candidate) => boolean,
  ): Choice {
    const queueScore = this.#queueScore(candidates);
    const weighed = weighEach(
      candidates,
      (candidate): Scores => ({
        prefix: this.indexes.matchedShare(request, candidate),
        kv: 1 - kvUsedRatio(candidate),
        queue: queueScore(candidate),
        isFull: fits(candidate) ? 0 : 1,
      }),
    );
    const { prefix, kv, queue } = this.#weights;
    const total = (scores: Scores): number => prefix * scores.prefix + kv * scores.kv + queue * scores.queue;
    const fitting = some(weighed, ({ isFull }) => isFull === 0) ?? weighed;
    const chosen = lowest(fitting, (scores) => -total(scores), random);
    return choiceOf(chosen, weighed, total, "highest weighted score");
  }

  /** (longest - own) / (longest - shortest); 1 for all where all are equal. */
  #queueScore(candidates: Candidates): (candidate: Candidate) => number {
    const queueOf = (candidate: Candidate): number => waitingRequests(candidate) / this.#speedOf(candidate);
    let longest = 0;
    let shortest = Number.POSITIVE_INFINITY;
    for (const candidate of candidates) {
      longest = Math.max(longest, queueOf(candidate));
      shortest = Math.min(shortest, queueOf(candidate));
    }
    return (candidate) => (longest === shortest ? 1 : (longest - queueOf(candidate)) / (longest - shortest));
  }
}
