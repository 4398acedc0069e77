import type { EngineSignals } from "../core/index.ts";
import { BLOCK_TOKENS, type EngineProfile } from "./engine-profiles.ts";
import { KvCache } from "./kv-cache.ts";
import { type StepWork, stepMs } from "./step-time.ts";
import { WaitingQueue } from "./waiting-queue.ts";

/** What the model needs to know of a request; the object itself is its identity. */
export interface EngineRequest {
  readonly promptTokens: number;
  /** Tokens it will generate, exactly; 0: prefill only (embeddings, scoring). */
  readonly outputTokens: number;
  /**
   * Hash chain over full blocks of prompt and output, shallow to deep. It may end early: what it does not
   * cover is never found in the prefix cache.
   */
  readonly blockHashes: readonly number[];
}

/**
 * Told what leaves the engine, in the order of the batch. It may submit and abort from within, at a time
 * not before `atMs`.
 */
export interface EngineObserver<Request extends EngineRequest> {
  /** The prompt is computed; the first token, if any, leaves at this same moment. */
  prefilled?(request: Request, cachedTokens: number, atMs: number): void;
  /** Output token number `generatedTokens`, counted from 1. Leave it out where nobody looks at single tokens. */
  token?(request: Request, generatedTokens: number, atMs: number): void;
  /** Exactly once for each request that was not aborted, after its last token. */
  finished?(request: Request, atMs: number): void;
}

export interface EngineModelOptions {
  readonly profile: EngineProfile;
  /** 1: the profile's pace; 0.5: steps take twice as long. */
  readonly speed?: number;
  /** Tokens per KV block; coarser blocks make long prompts cheaper to simulate. */
  readonly blockTokens?: number;
}

/** A request inside the engine. Its tokens are the prompt and what it generated so far. */
interface Sequence<Request> {
  readonly request: Request;
  readonly blocks: number[];
  /** Tokens whose keys and values are in the cache; one less than all while it decodes. */
  computedTokens: number;
  generatedTokens: number;
  /** Tokens of the step in progress. */
  scheduledTokens: number;
  /** Leading blocks that are in the prefix cache, or were found to be there already. */
  indexedBlocks: number;
  /** Prompt tokens found when it was first admitted; undefined: it never was. */
  cachedTokens: number | undefined;
  isAborted: boolean;
}

/**
 * An inference engine in time: continuous batching, chunked prefill, a paged KV cache with prefix reuse and
 * preemption, as in vLLM's V1 scheduler (docs/engine.md). It computes nothing but durations and counts.
 *
 * Time is passed in and never goes back. Steps follow one another without a gap while there is work, at the
 * moments the model itself computed, however late it is asked: a late caller gets the right times, later.
 * A step forms when time moves past its start or `advance` reaches it, so requests submitted at one and the
 * same moment share it.
 */
export class EngineModel<Request extends EngineRequest = EngineRequest> {
  readonly #profile: EngineProfile;
  readonly #speed: number;
  readonly #observer: EngineObserver<Request>;
  readonly #cache: KvCache;

  readonly #sequences = new Map<Request, Sequence<Request>>();
  readonly #waiting = new WaitingQueue<Sequence<Request>>();
  /** In order of admission. */
  #running: Sequence<Request>[] = [];
  /** End of the step in progress; undefined: none is. */
  #stepEndMs: number | undefined;
  /** Earliest start of the next step. */
  #readyAtMs = 0;

  /** Scratch, kept to spare the garbage: the work of the step in progress, and who got a token from the last one. */
  readonly #work: StepWork = { tokens: 0, pairs: 0, contextTokens: 0, decodes: 0 };
  readonly #served: Sequence<Request>[] = [];
  #isReporting = false;

  #promptTokensTotal = 0;
  #generatedTokensTotal = 0;
  #prefixHitTokensTotal = 0;
  #prefixQueryTokensTotal = 0;
  #preemptionsTotal = 0;

  constructor(options: EngineModelOptions, observer: EngineObserver<Request>) {
    this.#profile = options.profile;
    this.#speed = options.speed ?? 1;
    this.#observer = observer;
    this.#cache = new KvCache(options.profile.kvTokens, options.blockTokens ?? BLOCK_TOKENS);
  }

  /** KV blocks of the cache. */
  get totalBlocks(): number {
    return this.#cache.totalBlocks;
  }

  /** Tokens that fit the KV cache: prompt and output of one request must, or it could never end. */
  get capacityTokens(): number {
    return this.#cache.totalBlocks * this.#cache.blockTokens;
  }

  get runningRequests(): number {
    return this.#running.length;
  }

  /** Requests without a place in the batch, preempted ones included. */
  get waitingRequests(): number {
    return this.#sequences.size - this.#running.length;
  }

  /** Puts a request at the end of the queue. */
  submit(request: Request, nowMs: number): void {
    if (request.promptTokens < 1) throw new RangeError("a request has at least one prompt token");
    if (request.promptTokens + request.outputTokens > this.capacityTokens) {
      throw new RangeError(`a request must fit the KV cache of ${this.capacityTokens} tokens`);
    }
    if (this.#sequences.has(request)) throw new Error("this request is in the engine already");
    this.#catchUp(nowMs);
    if (this.#sequences.size === 0) this.#readyAtMs = Math.max(this.#readyAtMs, nowMs);
    const sequence: Sequence<Request> = {
      request,
      blocks: [],
      computedTokens: 0,
      generatedTokens: 0,
      scheduledTokens: 0,
      indexedBlocks: 0,
      cachedTokens: undefined,
      isAborted: false,
    };
    this.#sequences.set(request, sequence);
    this.#waiting.push(sequence);
  }

  /** Takes a request out and frees its blocks; a step in progress still takes its time. False: it was not there. */
  abort(request: Request, nowMs: number): boolean {
    this.#catchUp(nowMs);
    const sequence = this.#sequences.get(request);
    if (sequence === undefined) return false;
    sequence.isAborted = true;
    this.#sequences.delete(request);
    const place = this.#running.indexOf(sequence);
    if (place >= 0) this.#running.splice(place, 1);
    this.#cache.release(sequence.blocks);
    return true;
  }

  /** When something happens next; undefined: never, the engine is empty. */
  nextEventMs(): number | undefined {
    if (this.#stepEndMs !== undefined) return this.#stepEndMs;
    return this.#sequences.size > 0 ? this.#readyAtMs : undefined;
  }

  /** Runs every step that begins or ends up to and at `nowMs`. */
  advance(nowMs: number): void {
    this.#catchUp(nowMs);
    if (this.#isReporting || this.#stepEndMs !== undefined || this.#sequences.size === 0) return;
    if (this.#readyAtMs <= nowMs) this.#begin(this.#readyAtMs);
  }

  /** What this engine would report of itself. */
  signals(nowMs: number): EngineSignals {
    return {
      observedAtMs: nowMs,
      runningRequests: this.runningRequests,
      waitingRequests: this.waitingRequests,
      kvUsedRatio: this.#cache.usedRatio,
      kvCapacityTokens: this.capacityTokens,
      promptTokensTotal: this.#promptTokensTotal,
      generatedTokensTotal: this.#generatedTokensTotal,
      prefixHitTokensTotal: this.#prefixHitTokensTotal,
      prefixQueryTokensTotal: this.#prefixQueryTokensTotal,
      preemptionsTotal: this.#preemptionsTotal,
    };
  }

  /** Everything before `nowMs`, and the end of a step at `nowMs`. The step that could begin at `nowMs` is left open. */
  #catchUp(nowMs: number): void {
    // An observer that submits or aborts does so at the moment being reported: there is nothing to catch up.
    if (this.#isReporting) return;
    for (;;) {
      if (this.#stepEndMs !== undefined) {
        if (this.#stepEndMs > nowMs) return;
        this.#end(this.#stepEndMs);
      } else {
        if (this.#sequences.size === 0 || this.#readyAtMs >= nowMs) return;
        this.#begin(this.#readyAtMs);
      }
    }
  }

  #begin(atMs: number): void {
    const work = this.#work;
    work.tokens = 0;
    work.pairs = 0;
    work.contextTokens = 0;
    work.decodes = 0;
    const isEveryoneServed = this.#scheduleRunning();
    if (isEveryoneServed) this.#admitWaiting();
    this.#stepEndMs = atMs + stepMs(this.#profile, work) / this.#speed;
  }

  /** False: somebody was preempted, so there is no room for newcomers in this step. */
  #scheduleRunning(): boolean {
    const running = this.#running;
    const preemptionsBefore = this.#preemptionsTotal;
    for (let i = 0; i < running.length && this.#budget > 0; i++) {
      const sequence = running[i] as Sequence<Request>;
      const tokens = Math.min(tokensOf(sequence) - sequence.computedTokens, this.#budget);
      if (this.#makeRoom(sequence, tokens)) this.#schedule(sequence, tokens);
    }
    return this.#preemptionsTotal === preemptionsBefore;
  }

  #admitWaiting(): void {
    const { blockTokens } = this.#cache;
    while (this.#budget > 0 && this.#running.length < this.#profile.maxSequences) {
      const sequence = this.#waiting.peek();
      if (sequence === undefined) return;
      const all = tokensOf(sequence);
      // The last token is always computed: its output is the next token.
      const hitLimit = Math.floor((all - 1) / blockTokens);
      const { blockHashes } = sequence.request;
      const hits = this.#cache.enter(blockHashes, hitLimit, this.#cache.blocksFor(all), sequence.blocks);
      if (hits === undefined) return;
      this.#waiting.shift();
      this.#running.push(sequence);
      sequence.computedTokens = hits * blockTokens;
      sequence.indexedBlocks = hits;
      if (sequence.cachedTokens === undefined) this.#countPrefix(sequence, hits * blockTokens);
      const tokens = Math.min(all - sequence.computedTokens, this.#budget);
      this.#grow(sequence, tokens);
      this.#schedule(sequence, tokens);
    }
  }

  #countPrefix(sequence: Sequence<Request>, cachedTokens: number): void {
    sequence.cachedTokens = cachedTokens;
    this.#prefixHitTokensTotal += cachedTokens;
    this.#prefixQueryTokensTotal += sequence.request.promptTokens;
  }

  get #budget(): number {
    return this.#profile.coefficients.maxBatchTokens - this.#work.tokens;
  }

  /** Preempts from the end of the batch until `sequence` has its blocks; false: it was itself the last. */
  #makeRoom(sequence: Sequence<Request>, tokens: number): boolean {
    while (!this.#grow(sequence, tokens)) {
      const victim = this.#running.pop() as Sequence<Request>;
      this.#preempt(victim);
      if (victim === sequence) return false;
    }
    return true;
  }

  #grow(sequence: Sequence<Request>, tokens: number): boolean {
    const { blocks } = sequence;
    const end = sequence.computedTokens + tokens;
    if (end <= blocks.length * this.#cache.blockTokens) return true;
    return this.#cache.allocate(this.#cache.blocksFor(end) - blocks.length, blocks);
  }

  #preempt(victim: Sequence<Request>): void {
    this.#preemptionsTotal++;
    victim.computedTokens = 0;
    victim.indexedBlocks = 0;
    this.#cache.release(victim.blocks);
    this.#waiting.putBack(victim);
  }

  #schedule(sequence: Sequence<Request>, tokens: number): void {
    const work = this.#work;
    sequence.scheduledTokens = tokens;
    work.tokens += tokens;
    if (tokens === 1 && sequence.generatedTokens > 0) {
      work.decodes++;
      work.contextTokens += sequence.computedTokens + 1;
    } else {
      work.pairs += tokens * (sequence.computedTokens + tokens / 2);
    }
  }

  #end(atMs: number): void {
    this.#stepEndMs = undefined;
    this.#readyAtMs = atMs;
    this.#collect();
    this.#isReporting = true;
    try {
      for (const sequence of this.#served) this.#report(sequence, atMs);
    } finally {
      this.#isReporting = false;
      this.#served.length = 0;
    }
  }

  /** Books the step's tokens and lets the finished go; who got a token is in `#served` then. */
  #collect(): void {
    const running = this.#running;
    let kept = 0;
    for (let i = 0; i < running.length; i++) {
      const sequence = running[i] as Sequence<Request>;
      if (sequence.scheduledTokens > 0 && this.#book(sequence)) {
        this.#served.push(sequence);
        if (sequence.generatedTokens >= sequence.request.outputTokens) {
          this.#sequences.delete(sequence.request);
          this.#cache.release(sequence.blocks);
          continue;
        }
      }
      running[kept++] = sequence;
    }
    running.length = kept;
  }

  /** True: all its tokens are computed, so it got the next one. */
  #book(sequence: Sequence<Request>): boolean {
    sequence.computedTokens += sequence.scheduledTokens;
    sequence.scheduledTokens = 0;
    this.#indexFullBlocks(sequence);
    const { promptTokens, outputTokens } = sequence.request;
    if (sequence.computedTokens < promptTokens + sequence.generatedTokens) return false;
    if (sequence.generatedTokens === 0) this.#promptTokensTotal += promptTokens;
    if (outputTokens > 0) {
      sequence.generatedTokens++;
      this.#generatedTokensTotal++;
    }
    return true;
  }

  #indexFullBlocks(sequence: Sequence<Request>): void {
    const { blockHashes } = sequence.request;
    const { blockTokens } = this.#cache;
    while (
      (sequence.indexedBlocks + 1) * blockTokens <= sequence.computedTokens &&
      sequence.indexedBlocks < blockHashes.length
    ) {
      const depth = sequence.indexedBlocks++;
      this.#cache.index(sequence.blocks[depth] as number, blockHashes[depth] as number);
    }
  }

  #report(sequence: Sequence<Request>, atMs: number): void {
    const { request, generatedTokens } = sequence;
    if (sequence.isAborted) return;
    if (generatedTokens <= 1) this.#observer.prefilled?.(request, sequence.cachedTokens ?? 0, atMs);
    if (generatedTokens > 0 && !sequence.isAborted) this.#observer.token?.(request, generatedTokens, atMs);
    if (generatedTokens >= request.outputTokens && !sequence.isAborted) this.#observer.finished?.(request, atMs);
  }
}

function tokensOf(sequence: Sequence<EngineRequest>): number {
  return sequence.request.promptTokens + sequence.generatedTokens;
}
