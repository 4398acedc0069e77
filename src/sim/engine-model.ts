import type { EngineSignals } from "../core/index.ts";
import { BLOCK_TOKENS, type EngineProfile } from "./engine-profiles.ts";
import { Scheduler } from "./scheduler.ts";
import type { EngineRequest, Sequence } from "./sequence.ts";
import { StepRun } from "./step-run.ts";
import { stepMs } from "./step-time.ts";

export type { EngineRequest } from "./sequence.ts";

/**
 * Told what leaves the engine, in the order of the batch. It may submit and abort from within, at a time
 * not before `atMs`.
 */
export interface EngineObserver<Request extends EngineRequest> {
  /** The prompt is computed; the first token, if any, leaves at this same moment. */
  prefilled?(request: Request, cachedTokens: number, atMs: number): void;
  /**
   * Output token number `generatedTokens`, counted from 1. Leave it out where nobody looks at single tokens: the
   * engine then takes many steps at once, and `forEachRunning` tells how far they are.
   */
  token?(request: Request, generatedTokens: number, atMs: number): void;
  /** Exactly once for each request that was not taken out, after its last token. */
  finished?(request: Request, atMs: number): void;
}

export interface EngineModelOptions {
  readonly profile: EngineProfile;
  /** 1: the profile's pace; 0.5: steps take twice as long. */
  readonly speed?: number;
  /** Tokens per KV block; coarser blocks make long prompts cheaper to simulate. */
  readonly blockTokens?: number;
}

/**
 * An inference engine in time: continuous batching, chunked prefill, a paged KV cache with prefix reuse and
 * preemption, as in vLLM's V1 scheduler (docs/engine.md). It computes nothing but durations and counts.
 *
 * Time is passed in and never goes back. Steps follow one another without a gap while there is work, at the
 * moments the model itself computed, however late it is asked: a late caller gets the right times, later.
 * A step forms when time moves past its start or `advance` reaches it, so requests submitted at one and the
 * same moment share it.
 *
 * Steps that only decode one and the same batch are taken as one run. What comes in meanwhile cuts the run after
 * the step in progress, so that the times are those of single steps.
 */
export class EngineModel<Request extends EngineRequest = EngineRequest> {
  readonly #profile: EngineProfile;
  readonly #observer: EngineObserver<Request>;
  readonly #isTokenwise: boolean;
  readonly #blockTokens: number;
  readonly #scheduler: Scheduler<Request>;
  #speed: number;

  /** The steps in progress; undefined: none are. */
  #run: StepRun | undefined;
  /** Steps of the run that the scheduler was told of. */
  #passedSteps = 0;
  /** Earliest start of the next step. */
  #readyAtMs = 0;
  /** Whom to report, kept to spare the garbage. */
  readonly #served: Sequence<Request>[] = [];
  #isReporting = false;

  constructor(options: EngineModelOptions, observer: EngineObserver<Request>) {
    this.#profile = options.profile;
    this.#observer = observer;
    this.#isTokenwise = observer.token !== undefined;
    this.#blockTokens = options.blockTokens ?? BLOCK_TOKENS;
    this.#scheduler = new Scheduler(options.profile, this.#blockTokens);
    this.#speed = options.speed ?? 1;
  }

  /** KV blocks of the cache. */
  get totalBlocks(): number {
    return this.#scheduler.totalBlocks;
  }

  /** Tokens that fit the KV cache: prompt and output of one request must, or it could never end. */
  get capacityTokens(): number {
    return this.totalBlocks * this.#blockTokens;
  }

  get runningRequests(): number {
    return this.#scheduler.runningRequests;
  }

  /** Requests without a place in the batch, preempted ones included. */
  get waitingRequests(): number {
    return this.#scheduler.waitingRequests;
  }

  /** Puts a request at the end of the queue. */
  submit(request: Request, nowMs: number): void {
    if (request.promptTokens < 1) throw new RangeError("a request has at least one prompt token");
    if (request.promptTokens + request.outputTokens > this.capacityTokens) {
      throw new RangeError(`a request must fit the KV cache of ${this.capacityTokens} tokens`);
    }
    this.#catchUp(nowMs);
    // A run of steps beside a queue is one that nobody in the queue can join, let alone behind it.
    if (this.waitingRequests === 0) this.#cutRun(nowMs);
    if (this.#scheduler.isEmpty) this.#readyAtMs = Math.max(this.#readyAtMs, nowMs);
    this.#scheduler.add(request);
  }

  /** Takes a request out and frees its blocks; a step in progress still takes its time. False: it was not there. */
  abort(request: Request, nowMs: number): boolean {
    this.#catchUp(nowMs);
    this.#cutRun(nowMs);
    return this.#scheduler.abort(request);
  }

  /**
   * The engine crashes and is new: it loses its queue, its batch and its cache, and keeps its totals.
   *
   * @returns The requests it had, in order of submission; the observer hears no more of them.
   */
  failAll(nowMs: number): Request[] {
    this.#catchUp(nowMs);
    this.#run = undefined;
    this.#readyAtMs = nowMs;
    return this.#scheduler.clear();
  }

  /** Sets the pace, as in `EngineModelOptions`, of the steps that begin from `nowMs` on. */
  setSpeed(speed: number, nowMs: number): void {
    this.#catchUp(nowMs);
    this.#cutRun(nowMs);
    this.#speed = speed;
  }

  /**
   * When to `advance` next; undefined: the engine is empty. Nothing is reported before then, whatever the time,
   * unless something is submitted or taken out.
   */
  nextEventMs(): number | undefined {
    if (this.#run !== undefined) return this.#run.endMs;
    return this.#scheduler.isEmpty ? undefined : this.#readyAtMs;
  }

  /** Runs every step that begins or ends up to and at `nowMs`. */
  advance(nowMs: number): void {
    this.#catchUp(nowMs);
    if (this.#isReporting || this.#run !== undefined || this.#scheduler.isEmpty) return;
    if (this.#readyAtMs <= nowMs) this.#begin(this.#readyAtMs);
  }

  /**
   * Each request that has a place in the batch and the tokens it has generated by `nowMs`, in order of admission.
   * It reports nothing itself: `advance` first. The visitor must not submit or abort.
   */
  forEachRunning(nowMs: number, visit: (request: Request, generatedTokens: number) => void): void {
    this.#settle(nowMs);
    this.#scheduler.forEachRunning(visit);
  }

  /** What this engine would report of itself. It reports nothing to the observer: `advance` first. */
  signals(nowMs: number): EngineSignals {
    this.#settle(nowMs);
    const { totals } = this.#scheduler;
    return {
      observedAtMs: nowMs,
      runningRequests: this.runningRequests,
      waitingRequests: this.waitingRequests,
      maxRunningRequests: undefined,
      kvUsedRatio: this.#scheduler.usedRatio,
      kvCapacityTokens: this.capacityTokens,
      kvBlockTokens: this.#blockTokens,
      promptTokensTotal: totals.promptTokens,
      generatedTokensTotal: totals.generatedTokens,
      prefixHitTokensTotal: totals.prefixHitTokens,
      prefixQueryTokensTotal: totals.prefixQueryTokens,
      preemptionsTotal: totals.preemptions,
    };
  }

  /** Everything before `nowMs`, and the end of a step at `nowMs`. The step that could begin at `nowMs` is left open. */
  #catchUp(nowMs: number): void {
    // An observer that submits or aborts does so at the moment being reported: there is nothing to catch up.
    if (this.#isReporting) return;
    for (;;) {
      if (this.#run !== undefined) {
        if (this.#run.endMs > nowMs) return;
        this.#end(this.#run);
      } else {
        if (this.#scheduler.isEmpty || this.#readyAtMs >= nowMs) return;
        this.#begin(this.#readyAtMs);
      }
    }
  }

  /** Lets the run end with its step in progress at `nowMs`, so that the next one can be another. */
  #cutRun(nowMs: number): void {
    if (this.#run === undefined || this.#run.steps === 1) return;
    this.#settle(nowMs);
    this.#run.cutTo(this.#passedSteps + 1);
    this.#catchUp(nowMs);
  }

  /** Tells the scheduler of the steps of the run that are over at `nowMs`; by definition of a run nobody notices. */
  #settle(nowMs: number): void {
    if (this.#run !== undefined) this.#passTo(this.#run.stepsBefore(nowMs));
  }

  #passTo(steps: number): void {
    if (steps <= this.#passedSteps) return;
    this.#scheduler.pass(steps - this.#passedSteps);
    this.#passedSteps = steps;
  }

  #begin(atMs: number): void {
    const work = this.#scheduler.begin();
    const steps = this.#isTokenwise ? 1 : this.#scheduler.stepsAlike();
    const firstMs = stepMs(this.#profile, work) / this.#speed;
    const growthMs = (this.#profile.coefficients.contextMs * work.decodes) / this.#speed;
    this.#run = new StepRun(atMs, firstMs, growthMs, steps);
    this.#passedSteps = 0;
  }

  #end(run: StepRun): void {
    const atMs = run.endMs;
    this.#passTo(run.steps - 1);
    this.#run = undefined;
    this.#readyAtMs = atMs;
    this.#scheduler.end(this.#served, this.#isTokenwise);
    this.#isReporting = true;
    try {
      for (const sequence of this.#served) this.#report(sequence, atMs);
    } finally {
      this.#isReporting = false;
      this.#served.length = 0;
    }
  }

  #report(sequence: Sequence<Request>, atMs: number): void {
    if (sequence.isAborted) return;
    const { request } = sequence;
    const generatedTokens = this.#scheduler.generatedTokens(sequence);
    if (generatedTokens <= 1) this.#observer.prefilled?.(request, sequence.cachedTokens ?? 0, atMs);
    if (generatedTokens > 0 && !sequence.isAborted) this.#observer.token?.(request, generatedTokens, atMs);
    if (generatedTokens >= request.outputTokens && !sequence.isAborted) this.#observer.finished?.(request, atMs);
  }
}
