import {
  type Candidates,
  type Choice,
  type Policy,
  type RequestProfile,
  requestProfile,
  seededRandom,
} from "../../src/core/index.ts";
import { type PeerOptions, type PeerPolicy, peerPolicies } from "../../src/sim/index.ts";

/** The comparison policy of that name. */
export function peerNamed(name: string): PeerPolicy {
  const peer = peerPolicies.find(({ definition }) => definition.name === name);
  if (peer === undefined) throw new RangeError(`no comparison policy "${name}"`);
  return peer;
}

/** A policy made of a comparison policy's definition. */
export function createPeer(name: string, options: Partial<PeerOptions> = {}): Policy {
  const { definition } = peerNamed(name);
  return definition.create(definition.options.parse(options));
}

/** What it chooses. */
export function chosenBy(policy: Policy, request: RequestProfile, candidates: Candidates, nowMs = 0): Choice {
  return policy.choose(request, candidates, {
    nowMs,
    random: seededRandom(1),
    arrivedAtMs: nowMs,
    urgency: 0,
    place: undefined,
  });
}

/** Id of the endpoint it chooses. */
export function idChosenBy(policy: Policy, request: RequestProfile, candidates: Candidates, nowMs = 0): string {
  return chosenBy(policy, request, candidates, nowMs).chosen.endpoint.id;
}

/** It is told that the request went to `id`. */
export function routeTo(policy: Policy, id: string, request: RequestProfile, candidates: Candidates): void {
  const chosen = candidates.find(({ endpoint }) => endpoint.id === id);
  if (chosen === undefined) throw new RangeError(`no endpoint ${id}`);
  policy.routed?.({ request, chosen, candidates });
}

/** A request whose prompt consists of blocks of 100 tokens; equal hashes from the start are equal text. */
export function blocks(...hashes: readonly number[]): RequestProfile {
  return requestProfile({ promptTokens: 100 * hashes.length, prefix: { hashes, tokensPerBlock: 100 } });
}
