import type { Candidate, Candidates, Choice, PolicyContext, RequestProfile } from "../../core/index.ts";
import { holdingPeer, type PeerPolicy, plainPeer, type SpeedOf } from "./peer-policy.ts";
import { OwnIndexes, type PrefixKnowledge, uncachedTokens } from "./prefix-knowledge.ts";
import { chooseLowest, weighEach } from "./weighed.ts";

/** Costs are counted in KV blocks. */
const BLOCK_TOKENS = 16;

/** Of the replay in its documentation: more gains nothing. */
const TUNED_SCALE = 32;

const SCALES = [1, 16, TUNED_SCALE] as const;

/** Any pending prefill; a part of a batch; a whole one; and the default of earlier releases. */
const QUEUE_THRESHOLDS = [0, 0.25, 1, 4] as const;

/**
 * The KV router of NVIDIA Dynamo, from "Routing Concepts" and "Configuration and Tuning" of its documentation: scale x
 * uncached prompt blocks, active and new, plus active and new KV blocks; the lowest wins. Overlap credit 1,
 * temperature 0. Scale 1 is the default, 16 to 32 its published tuning.
 */
export const dynamoPeers: readonly PeerPolicy[] = SCALES.map((scale) =>
  plainPeer({
    name: `dynamo_${scale}`,
    summary: `${scale} x prefill blocks plus KV blocks`,
    score: "cost in blocks, lowest wins",
    create: (speedOf) => {
      const indexes = new OwnIndexes();
      return {
        routed: (event) => indexes.routed(event),
        choose: (...asked) => chooseDynamo(scale, indexes, speedOf, ...asked),
      };
    },
  }),
);

/**
 * Its router queue, from the same pages: requests wait while on every endpoint the prefill tokens not yet computed
 * exceed a threshold x what one step of the engine takes, in order of arrival or shortest prompt first (their weight
 * (1 + priority) / prompt tokens; all priorities are 0 here).
 */
export const dynamoQueuePeers: readonly PeerPolicy[] = QUEUE_THRESHOLDS.flatMap((threshold) => [
  routerQueue(threshold, "fcfs"),
  routerQueue(threshold, "shortest"),
]);

function routerQueue(threshold: number, order: "fcfs" | "shortest"): PeerPolicy {
  const orderName = order === "fcfs" ? "in order of arrival" : "shortest prompt first";
  return holdingPeer("own_hold", {
    name: `dynamo_queue_${threshold}_${order}`,
    summary: `dynamo_${TUNED_SCALE} behind a line, ${orderName}, while all have over ${threshold} batches of prefill to do`,
    score: "cost in blocks, lowest wins",
    create: (speedOf, batchTokensOf) => {
      const indexes = new OwnIndexes();
      const isBelow = (candidate: Candidate): boolean =>
        candidate.account.waitingPrefillTokens <= threshold * batchTokensOf(candidate);
      return {
        routed: (event) => indexes.routed(event),
        // The line is one for all: while anyone is below the threshold, all may be chosen.
        hasRoom: (_request, _candidate, pool) => pool.some(isBelow),
        ...(order === "shortest" && { queueKey: shortestPromptFirst }),
        choose: (...asked) => chooseDynamo(TUNED_SCALE, indexes, speedOf, ...asked),
      };
    },
  });
}

/** Order of a line: the fewest prompt tokens first. */
export function shortestPromptFirst({ promptTokens }: RequestProfile): number {
  return promptTokens;
}

/** The choice of the KV router. */
export function chooseDynamo(
  scale: number,
  knowledge: PrefixKnowledge,
  speedOf: SpeedOf,
  request: RequestProfile,
  candidates: Candidates,
  { random }: PolicyContext,
): Choice {
  const weighed = weighEach(candidates, (candidate) => {
    const { account, kvTokens } = candidate;
    const blockSpeed = BLOCK_TOKENS * speedOf(candidate);
    return {
      prefillBlocks: (account.waitingPrefillTokens + uncachedTokens(knowledge, request, candidate)) / blockSpeed,
      kvBlocks: (kvTokens + request.promptTokens) / blockSpeed,
    };
  });
  const cost = (blocks: { prefillBlocks: number; kvBlocks: number }) => scale * blocks.prefillBlocks + blocks.kvBlocks;
  return chooseLowest(weighed, cost, random, "lowest cost in blocks");
}
