import type { Candidate } from "../policy.ts";

/**
 * KV tokens that `promptTokens` more lack at the candidate, with room left for what is generated there until somebody
 * ends; 0 or less: they fit. Unknown KV size: they always do.
 *
 * With B requests running whose remaining outputs are about exponential of mean o, the first ends after o / B steps on
 * the mean, each of which takes B tokens: so what is generated until then is about exponential of mean o, whatever B.
 * A reserve of 3 o is exceeded once in 20 times; then a running request is preempted, and its work done twice.
 *
 * @param kvTokens Those that are taken at the candidate now, which callers have read already.
 * @param outputTokens Expected of the newcomer.
 */
export function missingKvTokens(
  { account, kvCapacityTokens }: Candidate,
  kvTokens: number,
  promptTokens: number,
  outputTokens: number,
): number {
  if (kvCapacityTokens === undefined) return 0;
  const meanRemainingTokens = (account.outputTokens + outputTokens) / (account.requests + 1);
  const growth = Math.min(GROWTH_RESERVE * meanRemainingTokens, MAX_RESERVE * kvCapacityTokens);
  const reserve = Math.max(MIN_RESERVE * kvCapacityTokens, growth);
  return kvTokens + promptTokens + reserve - kvCapacityTokens;
}

/** Of a large cache some blocks are always in between: freed but not seen to be, or filled by a step in progress. */
const MIN_RESERVE = 0.015;

const GROWTH_RESERVE = 3;

/** A small cache and long answers: rather preempt now and then than leave half of it empty. */
const MAX_RESERVE = 0.25;
