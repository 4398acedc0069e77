import type { Candidate, Policy, RequestProfile } from "../../core/index.ts";
import { chooseDynamo, shortestPromptFirst } from "./dynamo.ts";
import { chooseLmetric } from "./lmetric.ts";
import { holdingPeer, type PeerPolicy, type SpeedOf } from "./peer-policy.ts";
import { mirrored } from "./prefix-knowledge.ts";
import { chooseLowest, weighEach } from "./weighed.ts";

/** Above this share of the KV cache running requests begin to preempt one another. */
const KV_SHARE = 0.985;

type CreateChoice = (speedOf: SpeedOf) => Policy["choose"];

const chooseByLmetric: CreateChoice =
  (speedOf) =>
  (...asked) =>
    chooseLmetric(mirrored, speedOf, ...asked);

const chooseByDynamo: CreateChoice =
  (speedOf) =>
  (...asked) =>
    chooseDynamo(32, mirrored, speedOf, ...asked);

const chooseLeastKv: CreateChoice =
  () =>
  (request, candidates, { random }) => {
    const weighed = weighEach(candidates, (candidate) => ({ kvShare: kvShareWith(request, candidate) }));
    return chooseLowest(weighed, ({ kvShare }) => kvShare, random, "least of its KV cache used");
  };

/**
 * What a strong engineer would build from published parts: the choice of LMetric (arXiv 2603.15202), of Dynamo's KV
 * router or of the least used KV cache, among the endpoints whose cache takes the whole prompt, as vLLM's option to
 * count the full prompt on admission does (vLLM pull request 37307). They know the caches from the balancer's own
 * mirror.
 */
export const expertHoldPeers: readonly PeerPolicy[] = [
  expertHold("expert_lmetric_shortest", "lmetric", chooseByLmetric, "shortest"),
  expertHold("expert_lmetric_fcfs", "lmetric", chooseByLmetric, "fcfs"),
  expertHold("expert_dynamo_32_shortest", "dynamo_32", chooseByDynamo, "shortest"),
  expertHold("expert_least_kv_shortest", "least KV usage", chooseLeastKv, "shortest"),
];

function expertHold(name: string, rule: string, createChoice: CreateChoice, order: "fcfs" | "shortest"): PeerPolicy {
  return holdingPeer("expert_hold", {
    name,
    summary: `${rule} where the KV cache has room, ${order === "fcfs" ? "in order of arrival" : "shortest prompt first"}`,
    score: `that of ${rule}, lowest wins`,
    create: (speedOf) => ({
      hasRoom: hasKvRoom,
      ...(order === "shortest" && { queueKey: shortestPromptFirst }),
      choose: createChoice(speedOf),
    }),
  });
}

/** An endpoint with nothing to do has room for any prompt, or the longest would wait for ever. */
function hasKvRoom(request: RequestProfile, candidate: Candidate): boolean {
  return candidate.account.requests === 0 || kvShareWith(request, candidate) <= KV_SHARE;
}

/** Share of the KV cache in use with the request there; unknown size: 0. */
function kvShareWith({ promptTokens }: RequestProfile, { kvTokens, kvCapacityTokens }: Candidate): number {
  return kvCapacityTokens === undefined ? 0 : (kvTokens + promptTokens) / kvCapacityTokens;
}
