import { z } from "zod";
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

/**
 * Option of the policies that see load as a share of something: the seconds of work that make an
 * endpoint full. At full batch a vLLM engine whose KV cache is filled by chat (contexts of 1,300
 * tokens, 100 to 200 still to come) holds 10 to 20 s of work, one filled by long reasoning 90 to 250 s.
 * A minute leaves chat three times its worst, and is as long as most proxies wait for an answer.
 */
export const horizonSeconds: z.ZodDefault<z.ZodNumber> = z
  .number()
  .min(0.1)
  .max(3600)
  .default(60)
  .describe("seconds of work, at its capacity, that make an endpoint full");
