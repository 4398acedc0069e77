import { DecodeBatch } from "./decode-batch.ts";
import type { EngineProfile } from "./engine-profiles.ts";
import { KvCache } from "./kv-cache.ts";
import { type EngineRequest, Sequence } from "./sequence.ts";
import type { StepWork } from "./step-time.ts";
import { WaitingQueue } from "./waiting-queue.ts";

/** What an engine counts from its start on. */
export interface EngineTotals {
  promptTokens: number;
  generatedTokens: number;
  prefixHitTokens: number;
  prefixQueryTokens: number;
  preemptions: number;
}

/**
 * Decides what each step works on: continuous batching with chunked prefill, a paged KV cache with prefix reuse and
 * preemption. It knows steps, not time.
 *
 * At most one sequence is left in the middle of its prompt when a step ends, and it is the last of the batch: nobody
 * is admitted behind a prompt that takes the rest of the step. So the batch is the decoding sequences and then it.
 */
export class Scheduler<Request extends EngineRequest> {
  readonly totals: EngineTotals = {
    promptTokens: 0,
    generatedTokens: 0,
    prefixHitTokens: 0,
    prefixQueryTokens: 0,
    preemptions: 0,
  };

  readonly #profile: EngineProfile;
  readonly #blockTokens: number;
  #cache: KvCache;
  #decoding: DecodeBatch<Request>;
  #waiting = new WaitingQueue<Sequence<Request>>();
  readonly #sequences = new Map<Request, Sequence<Request>>();
  /** In order of admission. */
  readonly #running = new Set<Sequence<Request>>();
  /** Running, with a part of their prompt in the step in progress. */
  readonly #prefilling: Sequence<Request>[] = [];
  #admissions = 0;
  /** The work of the step in progress; one object to spare the garbage. */
  readonly #work: StepWork = { tokens: 0, pairs: 0, contextTokens: 0, decodes: 0 };
  #hasPreempted = false;

  constructor(profile: EngineProfile, blockTokens: number) {
    this.#profile = profile;
    this.#blockTokens = blockTokens;
    this.#cache = new KvCache(profile.kvTokens, blockTokens);
    this.#decoding = new DecodeBatch(blockTokens);
  }

  get totalBlocks(): number {
    return this.#cache.totalBlocks;
  }

  get usedRatio(): number {
    return this.#cache.usedRatio;
  }

  get isEmpty(): boolean {
    return this.#sequences.size === 0;
  }

  get runningRequests(): number {
    return this.#running.size;
  }

  get waitingRequests(): number {
    return this.#sequences.size - this.#running.size;
  }

  /** Puts a request at the end of the queue. */
  add(request: Request): void {
    if (this.#sequences.has(request)) throw new Error("this request is in the engine already");
    const sequence = new Sequence(request);
    this.#sequences.set(request, sequence);
    this.#waiting.push(sequence);
  }

  /** Takes a request out and frees its blocks. False: it was not there. */
  abort(request: Request): boolean {
    const sequence = this.#sequences.get(request);
    if (sequence === undefined) return false;
    sequence.isAborted = true;
    this.#sequences.delete(request);
    if (this.#running.has(sequence)) this.#giveUp(sequence);
    return true;
  }

  /** Takes all requests out, in order of submission, and forgets the cache; the totals stay. */
  clear(): Request[] {
    const requests = [...this.#sequences.keys()];
    for (const sequence of this.#sequences.values()) sequence.isAborted = true;
    this.#sequences.clear();
    this.#running.clear();
    this.#prefilling.length = 0;
    this.#waiting = new WaitingQueue();
    this.#cache = new KvCache(this.#profile.kvTokens, this.#blockTokens);
    this.#decoding = new DecodeBatch(this.#blockTokens);
    return requests;
  }

  /** Each request with a place in the batch and the tokens it has generated so far, in order of admission. */
  forEachRunning(visit: (request: Request, generatedTokens: number) => void): void {
    for (const sequence of this.#running) visit(sequence.request, this.#decoding.generatedTokens(sequence));
  }

  generatedTokens(sequence: Sequence<Request>): number {
    return this.#decoding.generatedTokens(sequence);
  }

  /** Forms the next step. The result is valid until the step after it. */
  begin(): Readonly<StepWork> {
    this.#hasPreempted = false;
    this.#growDecoding();
    const work = this.#work;
    work.tokens = this.#decoding.size;
    work.decodes = this.#decoding.size;
    work.contextTokens = this.#decoding.contextTokens;
    work.pairs = 0;
    this.#continuePrompt();
    if (!this.#hasPreempted) this.#admitWaiting();
    return work;
  }

  /** How many steps there will be like the one in progress, with it: the same batch, which nobody joins or leaves. */
  stepsAlike(): number {
    if (this.#prefilling.length > 0 || this.#hasPreempted || !this.#isQueueStuck()) return 1;
    return this.#decoding.stepsWithin(this.#cache.freeBlocks);
  }

  /** Ends the step in progress and begins the next, `steps` times, all within `stepsAlike`. */
  pass(steps: number): void {
    for (let left = steps; left > 0; ) {
      const taken = this.#decoding.stepsToEdge(left);
      this.#stepDecoding(taken);
      for (const sequence of this.#decoding.atEdge) this.#cache.allocate(1, sequence.blocks);
      left -= taken;
    }
  }

  /**
   * Ends the step in progress: books its tokens and lets the finished go. Appends to `served`, in the order of the
   * batch, those that got a token from it; unless `isTokenwise` only those whose first or last it was.
   */
  end(served: Sequence<Request>[], isTokenwise: boolean): void {
    if (isTokenwise) for (const sequence of this.#running) if (isDecoding(sequence)) served.push(sequence);
    this.#stepDecoding();
    for (let done = this.#decoding.takeFinished(); done !== undefined; done = this.#decoding.takeFinished()) {
      this.#finish(done);
      if (!isTokenwise) served.push(done);
    }
    this.#endPrompts(served);
  }

  #growDecoding(): void {
    const { atEdge } = this.#decoding;
    if (atEdge.length <= this.#cache.freeBlocks) {
      for (const sequence of atEdge) this.#cache.allocate(1, sequence.blocks);
      return;
    }
    for (const sequence of [...atEdge]) if (this.#running.has(sequence)) this.#makeRoom(sequence);
  }

  /** Preempts from the end of the batch until `sequence` has its block, or was itself the last. */
  #makeRoom(sequence: Sequence<Request>): void {
    while (!this.#cache.allocate(1, sequence.blocks)) {
      const victim = this.#last();
      this.#preempt(victim);
      if (victim === sequence) return;
    }
  }

  #last(): Sequence<Request> {
    let last: Sequence<Request> | undefined;
    for (const sequence of this.#running) last = sequence;
    if (last === undefined) throw new Error("the batch is empty");
    return last;
  }

  #preempt(victim: Sequence<Request>): void {
    this.#hasPreempted = true;
    this.totals.preemptions++;
    this.#giveUp(victim);
    victim.computedTokens = 0;
    victim.indexedBlocks = 0;
    this.#waiting.putBack(victim);
  }

  #continuePrompt(): void {
    const sequence = this.#prefilling[0];
    if (sequence === undefined) return;
    const tokens = Math.min(sequence.tokens - sequence.computedTokens, this.#budget);
    if (this.#grow(sequence, tokens)) this.#schedule(sequence, tokens);
    else this.#preempt(sequence);
  }

  #admitWaiting(): void {
    while (this.#budget > 0 && this.#running.size < this.#profile.maxSequences) {
      const sequence = this.#waiting.peek();
      if (sequence === undefined || !this.#enter(sequence)) return;
      this.#waiting.shift();
      sequence.admission = this.#admissions++;
      this.#running.add(sequence);
      this.#prefilling.push(sequence);
      const tokens = Math.min(sequence.tokens - sequence.computedTokens, this.#budget);
      this.#grow(sequence, tokens);
      this.#schedule(sequence, tokens);
    }
  }

  /** Takes what the prefix cache has of it; false: it does not fit. */
  #enter(sequence: Sequence<Request>): boolean {
    const { tokens, blocks, request } = sequence;
    // The last token is always computed: its output is the next token.
    const hitLimit = Math.floor((tokens - 1) / this.#blockTokens);
    const hits = this.#cache.enter(request.blockHashes, hitLimit, this.#cache.blocksFor(tokens), blocks);
    if (hits === undefined) return false;
    sequence.computedTokens = hits * this.#blockTokens;
    sequence.indexedBlocks = hits;
    if (sequence.cachedTokens === undefined) {
      sequence.cachedTokens = sequence.computedTokens;
      this.totals.prefixHitTokens += sequence.computedTokens;
      this.totals.prefixQueryTokens += request.promptTokens;
    }
    return true;
  }

  /** Takes a sequence out of the batch before its end. */
  #giveUp(sequence: Sequence<Request>): void {
    if (isDecoding(sequence)) this.#decoding.remove(sequence);
    else this.#prefilling.splice(this.#prefilling.indexOf(sequence), 1);
    this.#free(sequence);
  }

  #finish(sequence: Sequence<Request>): void {
    this.#sequences.delete(sequence.request);
    this.#free(sequence);
  }

  #free(sequence: Sequence<Request>): void {
    this.#running.delete(sequence);
    this.#cache.release(sequence.blocks);
  }

  get #budget(): number {
    return this.#profile.coefficients.maxBatchTokens - this.#work.tokens;
  }

  #grow({ blocks, computedTokens }: Sequence<Request>, tokens: number): boolean {
    return this.#cache.allocate(this.#cache.blocksFor(computedTokens + tokens) - blocks.length, blocks);
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

  /**
   * While blocks only get fewer, the first in line stays out; unless one that decodes is about to index a block of
   * its prompt. (Where two chains differ in one block, they differ in all that follow.)
   */
  #isQueueStuck(): boolean {
    const first = this.#waiting.peek();
    if (first === undefined || first.request.blockHashes.length === 0) return true;
    for (const { request, indexedBlocks } of this.#running) {
      const hash = request.blockHashes[indexedBlocks];
      if (hash !== undefined && hash === first.request.blockHashes[indexedBlocks]) return false;
    }
    return true;
  }

  /** Takes `steps`; with none but the last of them anybody is at an edge. */
  #stepDecoding(steps = 1): void {
    this.#decoding.step(steps);
    this.totals.generatedTokens += steps * this.#decoding.size;
    for (const sequence of this.#decoding.atEdge) this.#indexNextBlock(sequence);
  }

  #endPrompts(served: Sequence<Request>[]): void {
    let unfinished: Sequence<Request> | undefined;
    for (const sequence of this.#prefilling) {
      if (this.#endPrompt(sequence)) served.push(sequence);
      else unfinished = sequence;
    }
    this.#prefilling.length = 0;
    if (unfinished !== undefined) this.#prefilling.push(unfinished);
  }

  /** True: all its tokens are computed, so it got the next one. */
  #endPrompt(sequence: Sequence<Request>): boolean {
    sequence.computedTokens += sequence.scheduledTokens;
    while ((sequence.indexedBlocks + 1) * this.#blockTokens <= sequence.computedTokens) {
      if (!this.#indexNextBlock(sequence)) break;
    }
    if (sequence.computedTokens < sequence.tokens) return false;
    const { promptTokens, outputTokens } = sequence.request;
    if (sequence.generatedTokens === 0) this.totals.promptTokens += promptTokens;
    if (outputTokens > 0) {
      sequence.generatedTokens++;
      this.totals.generatedTokens++;
    }
    if (sequence.isFinished) this.#finish(sequence);
    else this.#decoding.add(sequence);
    return true;
  }

  /** False: its hashes end before. */
  #indexNextBlock(sequence: Sequence<Request>): boolean {
    const depth = sequence.indexedBlocks;
    const hash = sequence.request.blockHashes[depth];
    if (hash === undefined) return false;
    this.#cache.index(sequence.blocks[depth] as number, hash);
    sequence.indexedBlocks++;
    return true;
  }
}

function isDecoding(sequence: Sequence<EngineRequest>): boolean {
  return sequence.decodeOrigin !== undefined;
}
