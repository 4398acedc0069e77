import type { Cost } from "../cost.ts";
import { decodeStepMs, type EngineCoefficients, prefillMs } from "../engine-coefficients.ts";
import { RECENT_PREFILL_MS } from "../ledger.ts";
import type { Candidate } from "../policy.ts";

/** What sending one request to one endpoint costs everyone, in ms, part by part; the sum is the price. */
export type Price = {
  /** Until its own first token: the prefill ahead, its own, and the decoding that shares those steps. */
  readonly firstToken: number;
  /** Its own decoding, with the stalls that prefills still to come will cause. */
  readonly decode: number;
  /** Running requests stand still during its prefill. */
  readonly stall: number;
  /** Running requests decode slower beside it. */
  readonly slowdown: number;
  /** Requests that wait for their first token are pushed back by its prefill. */
  readonly queueBehind: number;
  /** Prefill of what another endpoint has in its cache. */
  readonly recompute: number;
};

/** The price: what the parts add up to. */
export function totalMs({ firstToken, decode, stall, slowdown, queueBehind, recompute }: Price): number {
  return firstToken + decode + stall + slowdown + queueBehind + recompute;
}

/** One endpoint with one request, as the price sees it. */
export interface Placement {
  readonly candidate: Candidate;
  readonly engine: EngineCoefficients;
  /** Of the request here, cache counted. */
  readonly cost: Cost;
}

/** What the endpoints have in common while one request is placed. */
export interface FleetView {
  /** Of the request where most of its prompt is cached. */
  readonly bestCost: Cost;
  /** Weight of sparing running requests, 1 to 0: see `sparing`. */
  readonly sparing: number;
}

/** Weights of the parts; docs/policies/least_delay.md gives the reason of each. */
const DECODE_WEIGHT = 0.3;
const SPARING_WEIGHT = 0.08;
const QUEUE_WEIGHT = 1.2;
const RECOMPUTE_WEIGHT = 2;
const FUTURE_STALL_WEIGHT = 0.6;

/** Share of an endpoint's time that prefill is believed to take at most: beyond, the rate says nothing any more. */
const MAX_PREFILL_SHARE = 0.8;

/** A prefill that is overdue is believed to be nearly done, never done. */
const MAX_PREFILL_PROGRESS = 0.9;

/** The price of the request at this placement. */
export function priceOf({ candidate, engine, cost }: Placement, fleet: FleetView, nowMs: number): Price {
  const { account } = candidate;
  const running = account.runningRequests;
  const ownMs = prefillMs(engine, cost.prefillTokens, cost.prefillPairs);
  const bestMs = prefillMs(engine, fleet.bestCost.prefillTokens, fleet.bestCost.prefillPairs);
  const prefillShare = recentPrefillShare(candidate, engine, nowMs);
  const growMs = stepGrowthMs(candidate, engine, cost, prefillShare);
  const stallFactor = 1 + (FUTURE_STALL_WEIGHT * fleet.sparing * prefillShare) / (1 - prefillShare);
  const stepMs = decodeStepMs(engine, running, account.contextTokens);
  return {
    firstToken: firstTokenMs(candidate, engine, cost, ownMs, nowMs),
    decode: DECODE_WEIGHT * cost.decodeTokens * (stepMs * stallFactor + growMs),
    stall: SPARING_WEIGHT * fleet.sparing * running * ownMs,
    slowdown: SPARING_WEIGHT * fleet.sparing * running * cost.decodeTokens * growMs,
    queueBehind: QUEUE_WEIGHT * account.waitingRequests * ownMs,
    recompute: RECOMPUTE_WEIGHT * (ownMs - bestMs),
  };
}

/**
 * How much running requests are spared a newcomer, 1 to 0. Sparing them keeps short answers and long
 * prompts apart, which pays while memory and compute are at hand; once the fleet's KV caches or its
 * decode batches fill up, keeping them even is worth more.
 */
export function sparing(placements: readonly Placement[]): number {
  let kvUsed = 0;
  let computeUsed = 0;
  for (const { candidate, engine } of placements) {
    const { account, kvCapacityTokens } = candidate;
    const kvTokens = account.contextTokens + account.waitingPromptTokens;
    if (kvCapacityTokens !== undefined) kvUsed += Math.min(1, kvTokens / kvCapacityTokens);
    computeUsed += (engine.computeMs * account.runningRequests) / engine.weightsMs;
  }
  return fade(kvUsed / placements.length, 0.6, 0.9) * fade(computeUsed / placements.length, 0.6, 1);
}

/** 1 up to `start`, 0 from `end` on, a straight line between. */
function fade(value: number, start: number, end: number): number {
  return Math.min(1, Math.max(0, (end - value) / (end - start)));
}

/** The prefill ahead of it and its own, and what running decodes add to each of the steps that takes. */
function firstTokenMs(
  { account }: Candidate,
  engine: EngineCoefficients,
  cost: Cost,
  ownMs: number,
  nowMs: number,
): number {
  const oldest = account.oldestWaiting;
  const oldestMs = oldest === undefined ? 0 : prefillMs(engine, oldest.prefillTokens, oldest.prefillPairs);
  const doneMs = Math.min(nowMs - account.prefillSinceMs, MAX_PREFILL_PROGRESS * oldestMs);
  const aheadMs = prefillMs(engine, account.waitingPrefillTokens, account.waitingPrefillPairs) - doneMs;
  const steps = 1 + (account.waitingPrefillTokens + cost.prefillTokens) / engine.maxBatchTokens;
  const running = account.runningRequests;
  const sharedMs =
    engine.stepMs +
    engine.contextMs * account.contextTokens +
    (engine.sequenceMs + engine.tokenMs + engine.computeMs) * running;
  return aheadMs + ownMs + steps * sharedMs;
}

/** What the request adds to every decode step while it runs; halfway through its answer, on the mean. */
function stepGrowthMs({ account }: Candidate, engine: EngineCoefficients, cost: Cost, prefillShare: number): number {
  // Its compute is hidden behind the reading of the weights, unless the batch is larger or prefill uses the gap.
  const isComputeBound = engine.computeMs * account.runningRequests > engine.weightsMs;
  return (
    engine.contextMs * (cost.promptTokens + cost.decodeTokens / 2) +
    engine.sequenceMs +
    engine.tokenMs +
    engine.computeMs * (isComputeBound ? 1 : prefillShare)
  );
}

/** Share of the endpoint's time that prefill took lately, 0 to `MAX_PREFILL_SHARE`. */
function recentPrefillShare({ account }: Candidate, engine: EngineCoefficients, nowMs: number): number {
  const recentMs = prefillMs(engine, account.recentPrefillTokens(nowMs), account.recentPrefillPairs(nowMs));
  return Math.min(MAX_PREFILL_SHARE, recentMs / RECENT_PREFILL_MS);
}
