import { type Account, RECENT_PREFILL_MS } from "../account.ts";
import type { Cost } from "../cost.ts";
import { decodeStepMs, type EngineCoefficients, prefillMs } from "../engine-coefficients.ts";
import type { Candidate, HeldPrefill } from "../policy.ts";
import { missingKvTokens } from "./kv-room.ts";

/** What sending one request to one endpoint costs everyone, in ms, part by part; the sum is the price. */
export type Price = {
  /** Until its own first token: the prefill ahead, its own, and the decoding that shares those steps. */
  readonly firstToken: number;
  /** Its own decoding, with the stalls that prefills still to come will cause. */
  readonly decode: number;
  /** Until enough running requests have ended for its prompt to fit the KV cache, after those held before it. */
  readonly memory: number;
  /** Running requests stand still during its prefill. */
  readonly stall: number;
  /** Running requests decode slower beside it. */
  readonly slowdown: number;
  /** Requests that wait for their first token, there or held for it, are pushed back by its prefill. */
  readonly queueBehind: number;
  /** Prefill of what another endpoint has in its cache. */
  readonly recompute: number;
  /** Prefill, later, of what it pushes out of the cache. */
  readonly eviction: number;
};

/** The price: what the parts add up to. */
export function totalMs(price: Price): number {
  const { firstToken, memory, decode, stall, slowdown, queueBehind, recompute, eviction } = price;
  return firstToken + memory + decode + stall + slowdown + queueBehind + recompute + eviction;
}

/** One endpoint with one request, as the price sees it. */
export interface Placement {
  readonly candidate: Candidate;
  readonly engine: EngineCoefficients;
  /** Of the request here, cache counted. */
  readonly cost: Cost;
  /** Its place among the requests held for the endpoint: see `LateBinding.holdKey`. */
  readonly key: number;
  readonly urgency: number;
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
const EVICTION_WEIGHT = 5;
const FUTURE_STALL_WEIGHT = 0.6;

/** Share of an endpoint's time that prefill is believed to take at most: beyond, the rate says nothing any more. */
const MAX_PREFILL_SHARE = 0.8;

/** A prefill that takes so many times as long as it should, and this much more, is one that does not move. */
const LATE_PREFILL = 3;
const STALL_MS = 1_000;

/** A prefill that is overdue is believed to be nearly done, never done. */
const MAX_PREFILL_PROGRESS = 0.9;

/** The price of the request at this placement. */
export function priceOf(placement: Placement, fleet: FleetView, nowMs: number): Price {
  const { candidate, engine, cost, key, urgency } = placement;
  const { account, held } = candidate;
  const running = account.runningRequests;
  const ownMs = prefillMs(engine, cost.prefillTokens, cost.prefillPairs);
  const bestMs = prefillMs(engine, fleet.bestCost.prefillTokens, fleet.bestCost.prefillPairs);
  const prefillShare = recentPrefillShare(candidate, engine, nowMs);
  const growMs = stepGrowthMs(candidate, engine, cost, prefillShare);
  const stallFactor = 1 + (FUTURE_STALL_WEIGHT * fleet.sparing * prefillShare) / (1 - prefillShare);
  const stepMs = decodeStepMs(engine, running, account.contextTokens);
  const waiting = account.waitingRequests + held.countBehind(key, urgency);
  const ahead = held.aheadOf(key, urgency);
  return {
    firstToken: firstTokenMs(candidate, engine, cost, ahead, ownMs, nowMs),
    memory: memoryMs(candidate, stepMs, cost, ahead),
    decode: DECODE_WEIGHT * cost.decodeTokens * (stepMs * stallFactor + growMs),
    stall: SPARING_WEIGHT * fleet.sparing * running * ownMs,
    slowdown: SPARING_WEIGHT * fleet.sparing * running * cost.decodeTokens * growMs,
    queueBehind: QUEUE_WEIGHT * waiting * ownMs,
    recompute: RECOMPUTE_WEIGHT * (ownMs - bestMs),
    eviction: EVICTION_WEIGHT * evictionMs(candidate, engine, cost, nowMs),
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
    const { account, kvCapacityTokens, kvTokens } = candidate;
    if (kvCapacityTokens !== undefined) kvUsed += Math.min(1, kvTokens / kvCapacityTokens);
    computeUsed += (engine.computeMs * account.runningRequests) / engine.weightsMs;
  }
  return fade(kvUsed / placements.length, 0.6, 0.9) * fade(computeUsed / placements.length, 0.6, 1);
}

/** 1 up to `start`, 0 from `end` on, a straight line between. */
function fade(value: number, start: number, end: number): number {
  return Math.min(1, Math.max(0, (end - value) / (end - start)));
}

/** Prefill that the endpoint still has to do for those that were sent there, less what it is believed to have done. */
function backlogMs({ account }: Candidate, engine: EngineCoefficients, nowMs: number): number {
  if (account.waitingRequests === 0) return 0;
  const oldest = account.oldestWaiting;
  const oldestMs = oldest === undefined ? 0 : prefillMs(engine, oldest.prefillTokens, oldest.prefillPairs);
  // Of what others sent the end is not seen: in time all of it is believed to be done.
  const mostDoneMs = MAX_PREFILL_PROGRESS * oldestMs + othersPrefillMs(account, engine);
  const waitingMs = prefillMs(engine, account.waitingPrefillTokens, account.waitingPrefillPairs);
  const sinceMs = nowMs - account.prefillSinceMs;
  // An engine that does not move for long may not move for as long again; what others sent moves unseen.
  const stalledMs = oldest === undefined ? 0 : Math.max(0, sinceMs - LATE_PREFILL * mostDoneMs - STALL_MS);
  return waitingMs - Math.min(sinceMs, mostDoneMs) + stalledMs;
}

/**
 * Prefill of all that were sent there and have not shown their first token: none of it is done for sure, but of what
 * other balancers told what there was time for.
 */
export function unfinishedPrefillMs({ account }: Candidate, engine: EngineCoefficients, nowMs: number): number {
  const waitingMs = prefillMs(engine, account.waitingPrefillTokens, account.waitingPrefillPairs);
  return waitingMs - Math.min(nowMs - account.prefillSinceMs, othersPrefillMs(account, engine));
}

function othersPrefillMs({ othersPrefillTokens, othersPrefillPairs }: Account, engine: EngineCoefficients): number {
  return prefillMs(engine, othersPrefillTokens, othersPrefillPairs);
}

/** The prefill ahead of it, there and held for it, its own, and what running decodes add to each of the steps that takes. */
function firstTokenMs(
  candidate: Candidate,
  engine: EngineCoefficients,
  cost: Cost,
  held: HeldPrefill,
  ownMs: number,
  nowMs: number,
): number {
  const { account } = candidate;
  const aheadMs = backlogMs(candidate, engine, nowMs) + prefillMs(engine, held.prefillTokens, held.prefillPairs);
  const tokens = account.waitingPrefillTokens + held.prefillTokens + cost.prefillTokens;
  return aheadMs + ownMs + (1 + tokens / engine.maxBatchTokens) * sharedStepMs(candidate, engine);
}

/**
 * Requests end at a rate of running requests / (output tokens still expected of one x step), each with its context:
 * that is how fast memory comes free.
 */
function memoryMs(candidate: Candidate, stepMs: number, cost: Cost, held: HeldPrefill): number {
  const { account } = candidate;
  if (account.runningRequests === 0) return 0;
  const missingTokens = missingKvTokens(candidate, cost.promptTokens + held.prefillTokens, cost.decodeTokens);
  const remainingTokens = account.outputTokens / account.requests;
  return missingTokens <= 0 ? 0 : (missingTokens * remainingTokens * stepMs) / account.contextTokens;
}

/** What running decodes add to a step that prefill fills. */
function sharedStepMs({ account }: Candidate, engine: EngineCoefficients): number {
  return (
    engine.stepMs +
    engine.contextMs * account.contextTokens +
    (engine.sequenceMs + engine.tokenMs + engine.computeMs) * account.runningRequests
  );
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

/** Prefill that will be done again for what this request pushes out of the cache, by how often it is still to be used. */
function evictionMs(candidate: Candidate, engine: EngineCoefficients, cost: Cost, nowMs: number): number {
  let lostMs = 0;
  candidate.visitEvicted(cost.prefillTokens + cost.decodeTokens, nowMs, (blockTokens, startTokens, usesToCome) => {
    lostMs += usesToCome * prefillMs(engine, blockTokens, blockTokens * (startTokens + blockTokens / 2));
  });
  return lostMs;
}
