import type { Cost } from "./cost.ts";
import { type EngineCoefficients, prefillMs } from "./engine-coefficients.ts";
import type { Fading } from "./fading.ts";
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
  /** The part of that whose end is not told as it comes. */
  readonly untoldPrefillTokens: number;
  readonly untoldPrefillPairs: number;
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
  /** Time that the prefill sent lately takes on `engine`, decaying with `RECENT_PREFILL_MS`. */
  recentPrefillMs(engine: EngineCoefficients, nowMs: number): number;
  /** The part of it that is this balancer's. */
  own(nowMs: number): AccountShare;
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
  readonly isPrompt: boolean;
  readonly atMs: number;
}

/** The ledger's own hold on an account: what leases do to it. */
export class MutableAccount implements Account {
  requests = 0;
  waitingRequests = 0;
  waitingPrefillTokens = 0;
  waitingPrefillPairs = 0;
  untoldPrefillTokens = 0;
  untoldPrefillPairs = 0;
  waitingPromptTokens = 0;
  runningRequests = 0;
  contextTokens = 0;
  outputTokens = 0;
  prefillSinceMs = 0;
  readonly #endpointId: string;
  readonly #changed: Set<string>;
  readonly #fading: Fading;
  /** In order of opening; first tokens come in about that order too, so that one is found near the front. */
  readonly #waiting: WaitingLease[] = [];
  readonly #recent: RecentPrefill;
  /** The part of it that is of this balancer's own leases. */
  readonly #ownRecent: RecentPrefill;
  /** As `prefillSinceMs`, by this balancer's own leases alone: what others said is not told back to them. */
  #ownPrefillSinceMs = Number.NEGATIVE_INFINITY;
  /** What other balancers said last, and what that adds up to; part of the sums above. */
  readonly #others = new Map<string, OthersShare>();
  readonly #othersSums = noSums();

  /** @param changed Takes the endpoint's id when requests come, show their first token or end: that is news to others. */
  constructor(endpointId: string, changed: Set<string>, fading: Fading) {
    this.#endpointId = endpointId;
    this.#changed = changed;
    this.#fading = fading;
    this.#recent = new RecentPrefill(fading);
    this.#ownRecent = new RecentPrefill(fading);
  }

  get othersPrefillTokens(): number {
    return this.#othersSums.waitingPrefillTokens;
  }

  get othersPrefillPairs(): number {
    return this.#othersSums.waitingPrefillPairs;
  }

  get oldestWaiting(): Cost | undefined {
    return this.#waiting[0]?.cost;
  }

  recentPrefillMs(engine: EngineCoefficients, nowMs: number): number {
    return this.#recent.onEngineMs(engine, nowMs);
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
    this.#recent.add(cost.prefillTokens, cost.prefillPairs, openedAtMs);
    this.#ownRecent.add(cost.prefillTokens, cost.prefillPairs, openedAtMs);
    this.#changed.add(this.#endpointId);
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
    this.#changed.add(this.#endpointId);
    return place === 0;
  }

  prefillMoved(nowMs: number): void {
    this.#ownPrefillSinceMs = Math.max(this.#ownPrefillSinceMs, nowMs);
    this.prefillSinceMs = Math.max(this.prefillSinceMs, nowMs);
  }

  addRunning(promptTokens: number): void {
    this.runningRequests++;
    this.contextTokens += promptTokens;
  }

  removeRunning(contextTokens: number): void {
    this.runningRequests--;
    this.contextTokens -= contextTokens;
    this.#changed.add(this.#endpointId);
  }

  /**
   * What the balancer `from` has in flight there, in place of what it said before; undefined: nothing any more.
   * @param isPrompt It tells each change as it comes.
   */
  adopt(from: string, share: AccountShare | undefined, isPrompt: boolean, nowMs: number): void {
    const before = this.#others.get(from);
    if (before !== undefined) this.#addSums(before, -1);
    if (share === undefined) this.#others.delete(from);
    else {
      const told = { share, isPrompt, atMs: nowMs };
      this.#others.set(from, told);
      this.#addSums(told, 1);
      const { prefillMovedAgoMs = Number.POSITIVE_INFINITY } = share;
      this.prefillSinceMs = Math.max(this.prefillSinceMs, nowMs - prefillMovedAgoMs);
    }
    if (before !== undefined || share !== undefined) this.#sumRecent(nowMs);
  }

  /** The part of it that is this balancer's. */
  own(nowMs: number): AccountShare {
    const others = this.#othersSums;
    return {
      requests: this.requests - others.requests,
      waitingRequests: this.waitingRequests - others.waitingRequests,
      waitingPrefillTokens: this.waitingPrefillTokens - others.waitingPrefillTokens,
      waitingPrefillPairs: this.waitingPrefillPairs - others.waitingPrefillPairs,
      waitingPromptTokens: this.waitingPromptTokens - others.waitingPromptTokens,
      runningRequests: this.runningRequests - others.runningRequests,
      contextTokens: this.contextTokens - others.contextTokens,
      outputTokens: this.outputTokens - others.outputTokens,
      recentPrefillTokens: this.#ownRecent.tokens(nowMs),
      recentPrefillPairs: this.#ownRecent.pairs(nowMs),
      prefillMovedAgoMs: Number.isFinite(this.#ownPrefillSinceMs) ? nowMs - this.#ownPrefillSinceMs : undefined,
    };
  }

  /** The endpoint left: what others have there is theirs to know. */
  forgetOthers(): void {
    const nowMs = Math.max(this.#recent.tickMs, this.#ownRecent.tickMs);
    for (const from of [...this.#others.keys()]) this.adopt(from, undefined, false, nowMs);
  }

  #addSums({ share, isPrompt }: OthersShare, sign: 1 | -1): void {
    addSums(this, share, sign);
    addSums(this.#othersSums, share, sign);
    if (isPrompt) return;
    this.untoldPrefillTokens += sign * share.waitingPrefillTokens;
    this.untoldPrefillPairs += sign * share.waitingPrefillPairs;
  }

  /** Anew: what fades has digits that taking away what was added would leave behind. */
  #sumRecent(nowMs: number): void {
    let tokens = this.#ownRecent.tokens(nowMs);
    let pairs = this.#ownRecent.pairs(nowMs);
    for (const { share, atMs } of this.#others.values()) {
      const left = this.#fading.left(atMs, nowMs);
      tokens += share.recentPrefillTokens * left;
      pairs += share.recentPrefillPairs * left;
    }
    this.#recent.set(tokens, pairs, nowMs);
  }
}

/**
 * Prefill that was sent lately, fading with `RECENT_PREFILL_MS`. Kept as what it would have been at the last tick, had it
 * been sent then: what is left of that is the same part for all accounts. To read it may move it on to a later tick, so
 * that this is done once.
 */
class RecentPrefill {
  #tokens = 0;
  #pairs = 0;
  #tickMs = 0;
  readonly #fading: Fading;

  constructor(fading: Fading) {
    this.#fading = fading;
  }

  /** The tick that it is kept for. */
  get tickMs(): number {
    return this.#tickMs;
  }

  tokens(nowMs: number): number {
    return this.#leftAt(nowMs) * this.#tokens;
  }

  pairs(nowMs: number): number {
    return this.#leftAt(nowMs) * this.#pairs;
  }

  /** Asked for every endpoint by every decision: one look at what is left of both. */
  onEngineMs(engine: EngineCoefficients, nowMs: number): number {
    return this.#leftAt(nowMs) * prefillMs(engine, this.#tokens, this.#pairs);
  }

  add(tokens: number, pairs: number, nowMs: number): void {
    const left = this.#leftAt(nowMs);
    this.#tokens += tokens / left;
    this.#pairs += pairs / left;
  }

  set(tokens: number, pairs: number, nowMs: number): void {
    this.#tokens = 0;
    this.#pairs = 0;
    this.add(tokens, pairs, nowMs);
  }

  /** What is left at `nowMs` of what it is kept as. */
  #leftAt(nowMs: number): number {
    const fading = this.#fading;
    fading.moveTo(nowMs);
    if (fading.tickMs !== this.#tickMs) this.#keepFor(fading.tickMs);
    return fading.leftSinceTick;
  }

  #keepFor(tickMs: number): void {
    const left = this.#fading.left(this.#tickMs, tickMs);
    this.#tokens *= left;
    this.#pairs *= left;
    this.#tickMs = tickMs;
  }
}

/** Sums over leases, which add up over balancers as well. */
interface Sums {
  requests: number;
  waitingRequests: number;
  waitingPrefillTokens: number;
  waitingPrefillPairs: number;
  waitingPromptTokens: number;
  runningRequests: number;
  contextTokens: number;
  outputTokens: number;
}

function noSums(): Sums {
  return {
    requests: 0,
    waitingRequests: 0,
    waitingPrefillTokens: 0,
    waitingPrefillPairs: 0,
    waitingPromptTokens: 0,
    runningRequests: 0,
    contextTokens: 0,
    outputTokens: 0,
  };
}

/** Field by field: this runs for each endpoint of each message, and a loop over names takes several times as long. */
function addSums(to: Sums, share: Readonly<Sums>, sign: 1 | -1): void {
  to.requests += sign * share.requests;
  to.waitingRequests += sign * share.waitingRequests;
  to.waitingPrefillTokens += sign * share.waitingPrefillTokens;
  to.waitingPrefillPairs += sign * share.waitingPrefillPairs;
  to.waitingPromptTokens += sign * share.waitingPromptTokens;
  to.runningRequests += sign * share.runningRequests;
  to.contextTokens += sign * share.contextTokens;
  to.outputTokens += sign * share.outputTokens;
}
