import { costOf, workTokens } from "../cost.ts";
import type { Candidate } from "../policy.ts";
import type { RequestProfile } from "../request.ts";

/** Load of an endpoint: the work in flight there, in seconds at its capacity. */
export function workSeconds({ account, speed }: Candidate): number {
  return workTokens(account.waitingPrefillTokens, account.outputTokens) / speed.tokensPerSecond;
}

/** The same load once `request` is there too; prompt tokens in the endpoint's cache are no work. */
export function workSecondsAfter(request: RequestProfile, candidate: Candidate): number {
  const cost = costOf(request, candidate.cachedTokens(request));
  return workSeconds(candidate) + workTokens(cost.prefillTokens, cost.decodeTokens) / candidate.speed.tokensPerSecond;
}
