import type { Account } from "./account.ts";
import type { Cost } from "./cost.ts";
import type { EngineSpeed, SpeedSample } from "./engine-speed.ts";
import type { Lease } from "./ledger.ts";
import type { PrefillDone } from "./shared-work.ts";

/** Times a stretch of one request's decoding. Sums are over its tokens. */
export interface DecodeTimer {
  startMs: number;
  lastMs: number;
  tokens: number;
  sequences: number;
  contextTokens: number;
  /** Prefill that the endpoint had done when the stretch began. */
  doneTokens: number;
  donePairs: number;
  doneSteps: number;
}

/** Prompts whose first tokens came together: they shared the engine's time, and only together tell what it took. */
interface Batch {
  readonly startMs: number;
  /** First tokens: the first that came and the last. */
  readonly firstMs: number;
  lastMs: number;
  tokens: number;
  pairs: number;
  /** Running requests beside them, and their context tokens. */
  readonly sequences: number;
  readonly contextTokens: number;
  /** No place became free while they waited. */
  isClean: boolean;
}

/**
 * Turns the moments at which an endpoint's requests move into observations of its speed: how long a
 * stretch of work took, beside how long it was believed to take. Stretches and not single gaps, since
 * tokens arrive in bursts (a busy event loop, a proxy that coalesces), and the gaps inside a burst
 * would pass for an engine of any speed. It is told before the request's lease moves.
 */
export class SpeedObserver {
  readonly #account: Account;
  readonly #speed: EngineSpeed;
  #doneTokens = 0;
  #donePairs = 0;
  #doneSteps = 0;
  /** What other balancers told of theirs, each as it said last, and what of it came since they were met. */
  readonly #others = new Map<string, PrefillDone>();
  #othersTokens = 0;
  #othersPairs = 0;
  #othersSteps = 0;
  #batch: Batch | undefined;
  #placeFreedMs = Number.NEGATIVE_INFINITY;
  #observedAtMs = Number.NEGATIVE_INFINITY;

  constructor(account: Account, speed: EngineSpeed) {
    this.#account = account;
    this.#speed = speed;
  }

  /** The first token of a request was seen, or the answer to one that generates nothing. */
  prefilled(lease: Lease, nowMs: number): void {
    this.#settle(nowMs);
    const isNewStep = this.#batch === undefined;
    this.#batch ??= this.#batchFrom(lease, nowMs);
    const batch = this.#batch;
    batch.lastMs = nowMs;
    batch.tokens += lease.cost.prefillTokens;
    batch.pairs += lease.cost.prefillPairs;
    batch.isClean &&= this.#placeFreedMs <= batch.startMs && this.#account.othersPrefillTokens === 0;
    this.#count(lease.cost, isNewStep ? 1 : 0);
  }

  /** A prefill is believed to be done, though nothing was seen of it. */
  prefillDone(cost: Cost): void {
    this.#count(cost, 1);
  }

  /** A running request ended: whoever waits may have waited for its place, and such a wait says nothing of prefill. */
  placeFreed(nowMs: number): void {
    this.#placeFreedMs = nowMs;
  }

  /** Begins to time a request's decoding. */
  decoding(nowMs: number): DecodeTimer {
    return {
      startMs: nowMs,
      lastMs: nowMs,
      tokens: 0,
      sequences: 0,
      contextTokens: 0,
      doneTokens: this.#doneTokens + this.#othersTokens,
      donePairs: this.#donePairs + this.#othersPairs,
      doneSteps: this.#doneSteps + this.#othersSteps,
    };
  }

  /** `tokens` more of a request were seen. */
  decoded(timer: DecodeTimer, tokens: number, nowMs: number): void {
    this.#settle(nowMs);
    this.add(timer, tokens);
    timer.lastMs = nowMs;
    // While somebody waits, prefill may be under way that is not counted yet.
    if (this.#account.waitingRequests > 0 || nowMs - timer.startMs < STRETCH_MS) return;
    if (this.#observe(timer, timer.tokens, nowMs - timer.startMs, nowMs)) Object.assign(timer, this.decoding(nowMs));
  }

  /** Adds tokens to a stretch without looking at the time. */
  add(timer: DecodeTimer, tokens: number): void {
    timer.tokens += tokens;
    timer.sequences += tokens * this.#account.runningRequests;
    timer.contextTokens += tokens * this.#account.contextTokens;
  }

  /** No more tokens will come: what the last stretch has is used, if it is enough. */
  decodingEnded(timer: DecodeTimer): void {
    this.#observe(timer, timer.tokens, timer.lastMs - timer.startMs, timer.lastMs);
  }

  /**
   * A request of `outputTokens` is over whose tokens were not seen. `timer` began when it was sent and
   * holds the tokens that were projected; with none, the endpoint is taken to have been as it is now.
   */
  decodedUnseen(timer: DecodeTimer, outputTokens: number, nowMs: number): void {
    if (timer.tokens === 0) this.add(timer, outputTokens);
    this.#observe(timer, outputTokens, nowMs - timer.startMs, nowMs);
  }

  /** What another balancer timed there. The streams of an endpoint share its steps: so soon after it, one's own say nothing new. */
  learn(sample: SpeedSample, nowMs: number): void {
    this.#speed.learn(sample);
    if (sample.scale === "decode") this.#observedAtMs = nowMs;
  }

  /** Prefill that was done there for this balancer since it began. */
  ownDone(): PrefillDone {
    return { tokens: this.#doneTokens, pairs: this.#donePairs, steps: this.#doneSteps };
  }

  /** What was done there for the balancer `from` since that began; undefined: it is gone. */
  adopt(from: string, done: PrefillDone | undefined): void {
    const before = this.#others.get(from);
    if (done === undefined) this.#others.delete(from);
    else this.#others.set(from, done);
    // What it did before it was met is not of now; one that counts less than before began anew.
    if (before === undefined || done === undefined || done.steps < before.steps) return;
    this.#othersTokens += done.tokens - before.tokens;
    this.#othersPairs += done.pairs - before.pairs;
    this.#othersSteps += done.steps - before.steps;
  }

  #count({ prefillTokens, prefillPairs }: Cost, steps: number): void {
    this.#doneTokens += prefillTokens;
    this.#donePairs += prefillPairs;
    this.#doneSteps += steps;
  }

  #batchFrom({ openedAtMs }: Lease, nowMs: number): Batch {
    const { runningRequests, contextTokens, prefillSinceMs } = this.#account;
    const stepMs = runningRequests === 0 ? 0 : this.#speed.decodeStepMs(runningRequests, contextTokens);
    return {
      // A newcomer waits for the step in progress, half of it on the mean.
      startMs: prefillSinceMs > openedAtMs ? prefillSinceMs : openedAtMs + stepMs / 2,
      firstMs: nowMs,
      lastMs: nowMs,
      tokens: 0,
      pairs: 0,
      sequences: runningRequests,
      contextTokens,
      isClean: true,
    };
  }

  /**
   * Uses the last batch once it is clear that nobody else belongs to it: half a decode step has passed without one,
   * and that is not just a belief, since it also is a good part of the time that the batch itself took. A step of
   * seconds hands out its first tokens over more than half a decode step of an engine that is believed to be fast.
   */
  #settle(nowMs: number): void {
    const batch = this.#batch;
    if (batch === undefined) return;
    const { startMs, firstMs, lastMs, sequences, contextTokens } = batch;
    if (nowMs - lastMs < this.#speed.decodeStepMs(sequences, contextTokens) / 2) return;
    // Since the first of them, so that a batch ends however steadily others follow.
    if (nowMs - firstMs < SPREAD * (firstMs - startMs)) return;
    this.#batch = undefined;
    if (batch.isClean) this.#speed.observePrefill(batch, lastMs - startMs);
  }

  /** False: too short, or too soon after another to say anything new: the streams of an endpoint share its steps. */
  #observe(timer: DecodeTimer, tokens: number, observedMs: number, nowMs: number): boolean {
    if (tokens < STRETCH_TOKENS || nowMs - this.#observedAtMs < STRETCH_MS) return false;
    const stretch = {
      tokens,
      sequences: timer.sequences / timer.tokens,
      contextTokens: timer.contextTokens / timer.tokens,
      prefillTokens: this.#doneTokens + this.#othersTokens - timer.doneTokens,
      prefillPairs: this.#donePairs + this.#othersPairs - timer.donePairs,
      prefillSteps: this.#doneSteps + this.#othersSteps - timer.doneSteps,
    };
    // One that told nothing must not keep the next one from being looked at: after a burst there may be no more.
    if (this.#speed.observeDecode(stretch, observedMs)) this.#observedAtMs = nowMs;
    return true;
  }
}

/** At least so many tokens and so long: then bursts of some tokens or of 50 ms blur the ends of a stretch by a fifth at most. */
const STRETCH_TOKENS = 8;
const STRETCH_MS = 250;

/** First tokens of one step come within this share of the time it took: what is added wrongly blurs it by no more. */
const SPREAD = 1 / 4;
