import type { Candidate } from "../../core/index.ts";

/**
 * Requests that wait in the engine or are on the way there; where it says nothing, those without a first token. What it
 * reports does not count the last few milliseconds' requests, and a line that opens would empty itself into that gap.
 */
export function waitingRequests({ signals, account }: Candidate): number {
  if (signals?.waitingRequests === undefined) return account.waitingRequests;
  if (signals.runningRequests === undefined) return signals.waitingRequests;
  return Math.max(signals.waitingRequests, account.requests - signals.runningRequests);
}

/** Used share of the KV cache, 0 to 1; where the engine says nothing, what was sent there takes; unknown size: 0. */
export function kvUsedRatio({ signals, kvTokens, kvCapacityTokens }: Candidate): number {
  if (signals?.kvUsedRatio !== undefined) return signals.kvUsedRatio;
  return kvCapacityTokens === undefined ? 0 : Math.min(1, kvTokens / kvCapacityTokens);
}
