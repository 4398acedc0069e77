import { type Account, RECENT_PREFILL_MS } from "../account.ts";
import { attentionPairs } from "../cost.ts";
import { decodeStepMs, type EngineCoefficients, prefillMs } from "../engine-coefficients.ts";
import type { Candidate, HeldPrefill } from "../policy.ts";
import { missingKvTokens } from "./kv-room.ts";
import { leastDelayKey } from "./least-delay-key.ts";
import type { Placing } from "./least-delay-placing.ts";

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

/**
 * How many numbers `writePrice` writes and `readPrice` reads. One list of numbers holds the prices at all candidates:
 * objects would be garbage by the hundred with each decision.
 */
export const PRICE_LENGTH = 8;

/** The price at candidate `i`, as `writePrice` wrote it. */
export function readPrice(prices: readonly number[], i: number): Price {
  const at = i * PRICE_LENGTH;
  return {
    firstToken: prices[at] as number,
    memory: prices[at + 1] as number,
    decode: prices[at + 2] as number,
    stall: prices[at + 3] as number,
    slowdown: prices[at + 4] as number,
    queueBehind: prices[at + 5] as number,
    recompute: prices[at + 6] as number,
    eviction: prices[at + 7] as number,
  };
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

/**
 * Writes the price of the request at candidate `i` into `prices`, from `i * PRICE_LENGTH` on, and its sum into `totals`:
 * returned, each would be an object on the heap.
 */
export function writePrice(
  prices: number[],
  totals: number[],
  placing: Placing,
  candidate: Candidate,
  i: number,
): void {
  const { account, held } = candidate;
  const { promptTokens, decodeTokens, sparing, nowMs, urgency } = placing;
  const prefillTokens = placing.prefillTokens[i] as number;
  const kvTokens = placing.kvTokens[i] as number;
  const engine = candidate.coefficients;
  const running = account.runningRequests;
  const ownMs = prefillMs(engine, prefillTokens, attentionPairs(prefillTokens, promptTokens));
  const bestMs = prefillMs(engine, placing.leastPrefillTokens, placing.leastPrefillPairs);
  const prefillShare = recentPrefillShare(account, engine, nowMs);
  const growMs = stepGrowthMs(account, engine, placing, prefillShare);
  const stallFactor = 1 + (FUTURE_STALL_WEIGHT * sparing * prefillShare) / (1 - prefillShare);
  const stepMs = decodeStepMs(engine, running, account.contextTokens);
  const isHeldFor = held.requests > 0;
  const key = isHeldFor ? keyAt(candidate, ownMs, placing) : 0;
  const ahead = isHeldFor ? held.aheadOf(key, urgency) : NOTHING_HELD;
  const behind = isHeldFor ? held.countBehind(key, urgency) : 0;

  const firstToken = firstTokenMs(account, engine, prefillTokens, ahead, ownMs, nowMs);
  const memory = memoryMs(candidate, kvTokens, stepMs, placing, ahead);
  const decode = DECODE_WEIGHT * decodeTokens * (stepMs * stallFactor + growMs);
  const stall = SPARING_WEIGHT * sparing * running * ownMs;
  const slowdown = SPARING_WEIGHT * sparing * running * decodeTokens * growMs;
  const queueBehind = QUEUE_WEIGHT * (account.waitingRequests + behind) * ownMs;
  const recompute = RECOMPUTE_WEIGHT * (ownMs - bestMs);
  const eviction = EVICTION_WEIGHT * evictionMs(candidate, kvTokens, engine, prefillTokens + decodeTokens, nowMs);
  const at = i * PRICE_LENGTH;
  prices[at] = firstToken;
  prices[at + 1] = memory;
  prices[at + 2] = decode;
  prices[at + 3] = stall;
  prices[at + 4] = slowdown;
  prices[at + 5] = queueBehind;
  prices[at + 6] = recompute;
  prices[at + 7] = eviction;
  totals[i] = firstToken + memory + decode + stall + slowdown + queueBehind + recompute + eviction;
}

/** Its place among those held for the candidate: where it is held, as it was put there, so that it is not ahead of itself. */
function keyAt({ endpoint }: Candidate, ownMs: number, { arrivedAtMs, place }: Placing): number {
  return place?.endpointId === endpoint.id ? place.key : leastDelayKey(ownMs, arrivedAtMs);
}

/** Prefill that the endpoint still has to do for those that wait there, less what it is believed to have done. */
function backlogMs(account: Account, engine: EngineCoefficients, nowMs: number): number {
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
 * other balancers told, and whose end they do not tell as it comes, what there was time for.
 */
export function unfinishedPrefillMs({ account }: Candidate, engine: EngineCoefficients, nowMs: number): number {
  const waitingMs = prefillMs(engine, account.waitingPrefillTokens, account.waitingPrefillPairs);
  const untoldMs = prefillMs(engine, account.untoldPrefillTokens, account.untoldPrefillPairs);
  return waitingMs - Math.min(nowMs - account.prefillSinceMs, untoldMs);
}

function othersPrefillMs({ othersPrefillTokens, othersPrefillPairs }: Account, engine: EngineCoefficients): number {
  return prefillMs(engine, othersPrefillTokens, othersPrefillPairs);
}

/** The prefill ahead of it, there and held for it, its own, and what running decodes add to each of the steps that takes. */
function firstTokenMs(
  account: Account,
  engine: EngineCoefficients,
  prefillTokens: number,
  held: HeldPrefill,
  ownMs: number,
  nowMs: number,
): number {
  const thereMs = account.waitingRequests > 0 ? backlogMs(account, engine, nowMs) : 0;
  const heldMs = prefillMs(engine, held.prefillTokens, held.prefillPairs);
  const tokens = account.waitingPrefillTokens + held.prefillTokens + prefillTokens;
  return thereMs + heldMs + ownMs + (1 + tokens / engine.maxBatchTokens) * sharedStepMs(account, engine);
}

/**
 * Requests end at a rate of running requests / (output tokens still expected of one x step), each with its context:
 * that is how fast memory comes free.
 */
function memoryMs(candidate: Candidate, kvTokens: number, stepMs: number, placing: Placing, held: HeldPrefill): number {
  const { account } = candidate;
  if (account.runningRequests === 0) return 0;
  const promptTokens = placing.promptTokens + held.prefillTokens;
  const missingTokens = missingKvTokens(candidate, kvTokens, promptTokens, placing.decodeTokens);
  if (missingTokens <= 0) return 0;
  const remainingTokens = account.outputTokens / account.requests;
  return (missingTokens * remainingTokens * stepMs) / account.contextTokens;
}

/** What running decodes add to a step that prefill fills. */
function sharedStepMs(account: Account, engine: EngineCoefficients): number {
  return (
    engine.stepMs +
    engine.contextMs * account.contextTokens +
    (engine.sequenceMs + engine.tokenMs + engine.computeMs) * account.runningRequests
  );
}

/** What the request adds to every decode step while it runs; halfway through its answer, on the mean. */
function stepGrowthMs(account: Account, engine: EngineCoefficients, placing: Placing, prefillShare: number): number {
  // Its compute is hidden behind the reading of the weights, unless the batch is larger or prefill uses the gap.
  const isComputeBound = account.runningRequests > engine.fullBatch;
  return (
    engine.contextMs * (placing.promptTokens + placing.decodeTokens / 2) +
    engine.sequenceMs +
    engine.tokenMs +
    engine.computeMs * (isComputeBound ? 1 : prefillShare)
  );
}

/** Share of the endpoint's time that prefill took lately, 0 to `MAX_PREFILL_SHARE`. */
function recentPrefillShare(account: Account, engine: EngineCoefficients, nowMs: number): number {
  return Math.min(MAX_PREFILL_SHARE, account.recentPrefillMs(engine, nowMs) / RECENT_PREFILL_MS);
}

/** Prefill that will be done again for what this request pushes out of the cache, by how often it is still to be used. */
function evictionMs(
  candidate: Candidate,
  kvTokens: number,
  engine: EngineCoefficients,
  tokens: number,
  nowMs: number,
): number {
  const { kvCapacityTokens = Number.POSITIVE_INFINITY, evictableKvTokens } = candidate;
  // Apart: a function that makes another one keeps what both use on the heap, from its first line on.
  return tokens <= kvCapacityTokens - kvTokens - evictableKvTokens ? 0 : lostMs(candidate, engine, tokens, nowMs);
}

function lostMs(candidate: Candidate, engine: EngineCoefficients, tokens: number, nowMs: number): number {
  let ms = 0;
  candidate.visitEvicted(tokens, nowMs, (blockTokens, startTokens, usesToCome) => {
    ms += usesToCome * prefillMs(engine, blockTokens, blockTokens * (startTokens + blockTokens / 2));
  });
  return ms;
}

const NOTHING_HELD: HeldPrefill = { prefillTokens: 0, prefillPairs: 0 };
