import { costOf } from "../cost.ts";
import { prefillMs } from "../engine-coefficients.ts";
import type { Candidate, LateBinding } from "../policy.ts";
import type { RequestProfile } from "../request.ts";
import { missingKvTokens } from "./kv-room.ts";
import { leastDelayKey } from "./least-delay-key.ts";
import { unfinishedPrefillMs } from "./least-delay-price.ts";

/**
 * When an endpoint can begin on a request: it has a slot and its KV cache room for the prompt, and no prefill waits
 * there, or so little that the request's own comes on top within `maxPrefillMs`. Until then the request waits here,
 * where it can still go elsewhere and shorter prompts can overtake it, and not in the engine's own queue, which is
 * first come, first served.
 *
 * Prompts much longer than a step so go one at a time, and every one of their steps gives a token to each running
 * request; short ones still share steps, which is what makes them cheap.
 */
export function leastDelayBinding(maxPrefillMs: number): LateBinding {
  return {
    fits,
    canBegin(request, candidate, nowMs) {
      if (!fits(request, candidate)) return false;
      if (!isServedInTurn(request, candidate)) return true;
      const waitingMs = unfinishedPrefillMs(candidate, candidate.speed.coefficients, nowMs);
      return waitingMs <= 0 || waitingMs + ownPrefillMs(request, candidate) <= maxPrefillMs;
    },
    holdKey(request, candidate, arrivedAtMs) {
      return leastDelayKey(ownPrefillMs(request, candidate), arrivedAtMs);
    },
  };
}

/** A slot is free, if it has slots, and there is room in its KV cache. */
function fits({ promptTokens, output }: RequestProfile, candidate: Candidate): boolean {
  const { account, signals } = candidate;
  if (account.requests === 0) return true;
  if (account.requests >= (signals?.maxRunningRequests ?? Number.POSITIVE_INFINITY)) return false;
  return missingKvTokens(candidate, candidate.kvTokens, promptTokens, output.meanTokens) <= 0;
}

/**
 * Whether the request would wait for the prefill of those before it. Only an engine that tells of its batch is known to
 * have one: what stands between the balancer and a hosted model may serve all at once, and its time to a first token
 * says nothing of work. A request that generates nothing shows no first token, so that its turn cannot be told.
 */
function isServedInTurn({ output }: RequestProfile, { account, signals }: Candidate): boolean {
  return account.waitingRequests > 0 && output.meanTokens > 0 && signals?.runningRequests !== undefined;
}

function ownPrefillMs(request: RequestProfile, candidate: Candidate): number {
  const { prefillTokens, prefillPairs } = costOf(request, candidate.cachedTokens(request));
  return prefillMs(candidate.speed.coefficients, prefillTokens, prefillPairs);
}
