import type { Cost } from "./cost.ts";
import type { AccountShare } from "./shared-work.ts";

/**
 * Work in flight on one endpoint: always the sum of its open leases and of what other balancers last said of theirs.
 * Read-only outside the ledger.
 */
export interface Account {
  /** Open leases. */
  readonly requests: number;
  /** Those that have not shown their first token. */
  readonly waitingRequests: number;
  /** Uncached prompt tokens of the waiting requests: prefill still to do. */
  readonly waitingPrefillTokens: number;
  /** Attention pairs of that prefill. */
  readonly waitingPrefillPairs: number;
  /** The part of both that other balancers spoke of: what became of it since is not seen. */
  readonly othersPrefillTokens: number;
  readonly othersPrefillPairs: number;
  /** All prompt tokens of the waiting requests: KV they will take. */
  readonly waitingPromptTokens: number;
  /** Requests past their first token. */
  readonly runningRequests: number;
  /** Prompt and generated tokens of the running requests: KV they hold. */
  readonly contextTokens: number;
  /** Output tokens still expected, waiting and running requests together. */
  readonly outputTokens: number;
  /**
   * When prefill last moved on: the last first token or end of a request that was first in line, or the start of the
   * backlog. Never goes back.
   */
  readonly prefillSinceMs: number;
  /** Cost of the request of this balancer that has waited longest for its first token; undefined: none of it waits. */
  readonly oldestWaiting: Cost | undefined;
  /** Prefill tokens sent lately, decaying with `RECENT_PREFILL_MS`. */
  recentPrefillTokens(nowMs: number): number;
  /** Attention pairs of that prefill. */
  recentPrefillPairs(nowMs: number): number;
}

/** Time constant of what an account calls recent: long against one prefill, short against a change of traffic. */
export const RECENT_PREFILL_MS = 10_000;

/** A lease as its account sees it. */
export interface WaitingLease {
  readonly cost: Cost;
  readonly openedAtMs: number;
}

/** What another balancer said, and when it was heard. */
interface OthersShare {
  readonly share: AccountShare;
  readonly atMs: number;
}

/** The ledger's own hold on an account: what leases do to it. */
export class MutableAccount implements Account {
  requests = 0;
  waitingRequests = 0;
  waitingPrefillTokens = 0;
  waitingPrefillPairs = 0;
  othersPrefillTokens = 0;
  othersPrefillPairs = 0;
  waitingPromptTokens = 0;
  runningRequests = 0;
  contextTokens = 0;
  outputTokens = 0;
  prefillSinceMs = 0;
  /** In order of opening; first tokens come in about that order too, so that one is found near the front. */
  readonly #waiting: WaitingLease[] = [];
  #recentTokens = 0;
  #recentPairs = 0;
  #recentAtMs = 0;
  /** What other balancers said last; part of the sums above. */
  readonly #others = new Map<string, OthersShare>();

  get oldestWaiting(): Cost | undefined {
    return this.#waiting[0]?.cost;
  }

  recentPrefillTokens(nowMs: number): number {
    return this.#recentTokens * this.#fade(nowMs);
  }

  recentPrefillPairs(nowMs: number): number {
    return this.#recentPairs * this.#fade(nowMs);
  }

  addWaiting(lease: WaitingLease): void {
    const { cost, openedAtMs } = lease;
    if (this.waitingRequests === 0) this.prefillMoved(openedAtMs);
    this.requests++;
    this.waitingRequests++;
    this.waitingPrefillTokens += cost.prefillTokens;
    this.waitingPrefillPairs += cost.prefillPairs;
    this.waitingPromptTokens += cost.promptTokens;
    this.outputTokens += cost.decodeTokens;
    this.#waiting.push(lease);
    this.#addRecent(cost.prefillTokens, cost.prefillPairs, openedAtMs);
  }

  /** True: it was first in line, so prefill goes on to the next. */
  removeWaiting(lease: WaitingLease): boolean {
    const { cost } = lease;
    const place = this.#waiting.indexOf(lease);
    this.waitingRequests--;
    this.waitingPrefillTokens -= cost.prefillTokens;
    this.waitingPrefillPairs -= cost.prefillPairs;
    this.waitingPromptTokens -= cost.promptTokens;
    this.#waiting.splice(place, 1);
    return place === 0;
  }

  prefillMoved(nowMs: number): void {
    this.prefillSinceMs = Math.max(this.prefillSinceMs, nowMs);
  }

  addRunning(promptTokens: number): void {
    this.runningRequests++;
    this.contextTokens += promptTokens;
  }

  removeRunning(contextTokens: number): void {
    this.runningRequests--;
    this.contextTokens -= contextTokens;
  }

  /** What the balancer `from` has in flight there, in place of what it said before; undefined: nothing any more. */
  adopt(from: string, share: AccountShare | undefined, nowMs: number): void {
    const before = this.#others.get(from);
    if (before !== undefined) this.#addShare(before.share, -1, fade(before.atMs, nowMs), nowMs);
    if (share === undefined) {
      this.#others.delete(from);
      return;
    }
    this.#others.set(from, { share, atMs: nowMs });
    this.#addShare(share, 1, 1, nowMs);
    this.prefillMoved(nowMs - share.prefillMovedAgoMs);
  }

  /** The part of it that is this balancer's. */
  own(nowMs: number): AccountShare {
    let recentPrefillTokens = this.recentPrefillTokens(nowMs);
    let recentPrefillPairs = this.recentPrefillPairs(nowMs);
    const own = sumsOf(this);
    for (const { share, atMs } of this.#others.values()) {
      for (const sum of SUMS) own[sum] -= share[sum];
      recentPrefillTokens -= share.recentPrefillTokens * fade(atMs, nowMs);
      recentPrefillPairs -= share.recentPrefillPairs * fade(atMs, nowMs);
    }
    return { ...own, recentPrefillTokens, recentPrefillPairs, prefillMovedAgoMs: nowMs - this.prefillSinceMs };
  }

  /** The endpoint left: what others have there is theirs to know. */
  forgetOthers(): void {
    for (const from of [...this.#others.keys()]) this.adopt(from, undefined, this.#recentAtMs);
  }

  #addShare(share: AccountShare, sign: 1 | -1, recentFade: number, nowMs: number): void {
    for (const sum of SUMS) this[sum] += sign * share[sum];
    this.othersPrefillTokens += sign * share.waitingPrefillTokens;
    this.othersPrefillPairs += sign * share.waitingPrefillPairs;
    const factor = sign * recentFade;
    this.#addRecent(factor * share.recentPrefillTokens, factor * share.recentPrefillPairs, nowMs);
  }

  #addRecent(tokens: number, pairs: number, nowMs: number): void {
    this.#recentTokens = this.recentPrefillTokens(nowMs) + tokens;
    this.#recentPairs = this.recentPrefillPairs(nowMs) + pairs;
    this.#recentAtMs = nowMs;
  }

  #fade(nowMs: number): number {
    return fade(this.#recentAtMs, nowMs);
  }
}

/** Sums over leases, which add up over balancers as well. */
const SUMS = [
  "requests",
  "waitingRequests",
  "waitingPrefillTokens",
  "waitingPrefillPairs",
  "waitingPromptTokens",
  "runningRequests",
  "contextTokens",
  "outputTokens",
] as const;

function sumsOf(account: Account): Record<(typeof SUMS)[number], number> {
  const { requests, waitingRequests, waitingPrefillTokens, waitingPrefillPairs } = account;
  const { waitingPromptTokens, runningRequests, contextTokens, outputTokens } = account;
  return {
    requests,
    waitingRequests,
    waitingPrefillTokens,
    waitingPrefillPairs,
    waitingPromptTokens,
    runningRequests,
    contextTokens,
    outputTokens,
  };
}

/** What is left at `nowMs` of something that was recent at `atMs`. */
function fade(atMs: number, nowMs: number): number {
  return Math.exp((atMs - nowMs) / RECENT_PREFILL_MS);
}
