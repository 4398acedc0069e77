import type { EngineObserver, EngineProfile, EngineRequest } from "../../src/sim/index.ts";

interface Block {
  /** Undefined: nobody can find it. */
  hash: number | undefined;
  references: number;
}

interface Running<Request> {
  readonly request: Request;
  blocks: Block[];
  computed: number;
  generated: number;
  scheduled: number;
  indexed: number;
  cached: number | undefined;
}

/**
 * The engine model in its plainest form, to compare the real one with: one step at a time, every sequence in every
 * step, linear searches. Its caller drives it from step to step: whatever is submitted or aborted before `nextEventMs`
 * takes effect with the step that begins there.
 */
export class StepwiseEngine<Request extends EngineRequest> {
  readonly #profile: EngineProfile;
  readonly #blockTokens: number;
  readonly #observer: EngineObserver<Request>;
  /** Least recently released first. */
  #free: Block[];
  #indexed: Block[] = [];
  #waiting: Running<Request>[] = [];
  #running: Running<Request>[] = [];
  #isInStep = false;
  #nextMs = Number.POSITIVE_INFINITY;
  speed = 1;
  preemptions = 0;

  constructor(profile: EngineProfile, blockTokens: number, observer: EngineObserver<Request>) {
    this.#profile = profile;
    this.#blockTokens = blockTokens;
    this.#observer = observer;
    this.#free = this.#emptyBlocks();
  }

  /** End of the step in progress, or begin of the next; infinite: there is none. */
  get nextEventMs(): number {
    return this.#nextMs;
  }

  get usedBlocks(): number {
    return this.#emptyBlocks().length - this.#free.length;
  }

  submit(request: Request, nowMs: number): void {
    if (this.#nextMs === Number.POSITIVE_INFINITY) this.#nextMs = nowMs;
    this.#waiting.push({
      request,
      blocks: [],
      computed: 0,
      generated: 0,
      scheduled: 0,
      indexed: 0,
      cached: undefined,
    });
  }

  /** False: it was not there. */
  abort(request: Request): boolean {
    const gone = [...this.#running, ...this.#waiting].find((one) => one.request === request);
    if (gone === undefined) return false;
    this.#release(gone);
    this.#running = this.#running.filter((one) => one !== gone);
    this.#waiting = this.#waiting.filter((one) => one !== gone);
    this.#rest();
    return true;
  }

  /** Returns how many requests were lost. */
  failAll(): number {
    const lost = this.#running.length + this.#waiting.length;
    this.#free = this.#emptyBlocks();
    this.#indexed = [];
    this.#waiting = [];
    this.#running = [];
    this.#isInStep = false;
    this.#rest();
    return lost;
  }

  generatedTokens(): Map<Request, number> {
    return new Map(this.#running.map(({ request, generated }) => [request, generated]));
  }

  /** Goes through what is next: the end of the step in progress, or the begin of another. */
  next(): void {
    if (this.#isInStep) this.#end();
    else this.#begin();
  }

  #begin(): void {
    let budget = this.#profile.coefficients.maxBatchTokens;
    const preemptionsBefore = this.preemptions;
    for (let i = 0; i < this.#running.length && budget > 0; i++) {
      const one = this.#running[i] as Running<Request>;
      one.scheduled = Math.min(tokensOf(one) - one.computed, budget);
      if (this.#makeRoom(one)) budget -= one.scheduled;
    }
    while (
      preemptionsBefore === this.preemptions &&
      budget > 0 &&
      this.#running.length < this.#profile.maxSequences &&
      this.#admitFirst(budget)
    ) {
      budget -= this.#running.at(-1)?.scheduled ?? 0;
    }
    this.#isInStep = true;
    this.#nextMs += this.#stepMs() / this.speed;
  }

  #makeRoom(one: Running<Request>): boolean {
    while (!this.#grow(one)) {
      const victim = this.#running.pop() as Running<Request>;
      this.#release(victim);
      this.preemptions++;
      this.#waiting.unshift(Object.assign(victim, { computed: 0, indexed: 0, scheduled: 0 }));
      if (victim === one) return false;
    }
    return true;
  }

  #admitFirst(budget: number): boolean {
    const first = this.#waiting[0];
    if (first === undefined) return false;
    const hits: Block[] = [];
    for (const hash of first.request.blockHashes.slice(0, Math.floor((tokensOf(first) - 1) / this.#blockTokens))) {
      const block = this.#indexed.find((candidate) => candidate.hash === hash);
      if (block === undefined) break;
      hits.push(block);
    }
    const freeWithoutHits = this.#free.filter((block) => !hits.includes(block));
    if (freeWithoutHits.length < Math.ceil(tokensOf(first) / this.#blockTokens) - hits.length) return false;
    this.#free = freeWithoutHits;
    for (const block of hits) block.references++;
    first.blocks = hits;
    first.indexed = hits.length;
    first.computed = hits.length * this.#blockTokens;
    first.cached ??= first.computed;
    first.scheduled = Math.min(tokensOf(first) - first.computed, budget);
    this.#grow(first);
    this.#running.push(first);
    this.#waiting.shift();
    return true;
  }

  #grow(one: Running<Request>): boolean {
    const missing = Math.ceil((one.computed + one.scheduled) / this.#blockTokens) - one.blocks.length;
    if (missing > this.#free.length) return false;
    for (const block of this.#free.splice(0, missing)) {
      this.#indexed = this.#indexed.filter((candidate) => candidate !== block);
      one.blocks.push(Object.assign(block, { hash: undefined, references: 1 }));
    }
    return true;
  }

  #stepMs(): number {
    const { coefficients: c, bend } = this.#profile;
    let [tokens, pairs, context, decodes] = [0, 0, 0, 0];
    for (const { scheduled, computed, generated } of this.#running) {
      tokens += scheduled;
      if (scheduled === 1 && generated > 0) {
        decodes++;
        context += computed + 1;
      } else pairs += scheduled * (computed + scheduled / 2);
    }
    const floorMs = (c.weightsMs ** bend + (c.computeMs * tokens) ** bend) ** (1 / bend);
    return c.stepMs + floorMs + c.tokenMs * tokens + c.pairMs * pairs + c.contextMs * context + c.sequenceMs * decodes;
  }

  #end(): void {
    const atMs = this.#nextMs;
    this.#isInStep = false;
    const served = this.#running.filter((one) => this.#book(one));
    for (const one of served) if (isFinished(one)) this.#release(one);
    this.#running = this.#running.filter((one) => !(served.includes(one) && isFinished(one)));
    this.#rest();
    for (const { request, generated, cached } of served) {
      if (generated <= 1) this.#observer.prefilled?.(request, cached ?? 0, atMs);
      if (generated > 0) this.#observer.token?.(request, generated, atMs);
      if (generated >= request.outputTokens) this.#observer.finished?.(request, atMs);
    }
  }

  #book(one: Running<Request>): boolean {
    if (one.scheduled === 0) return false;
    one.computed += one.scheduled;
    one.scheduled = 0;
    const full = Math.min(Math.floor(one.computed / this.#blockTokens), one.request.blockHashes.length);
    for (; one.indexed < full; one.indexed++) {
      const hash = one.request.blockHashes[one.indexed];
      if (this.#indexed.some((block) => block.hash === hash)) continue;
      this.#indexed.push(Object.assign(one.blocks[one.indexed] as Block, { hash }));
    }
    if (one.computed < tokensOf(one)) return false;
    if (one.request.outputTokens > 0) one.generated++;
    return true;
  }

  #release(one: Running<Request>): void {
    for (const block of one.blocks.reverse()) if (--block.references === 0) this.#free.push(block);
    one.blocks = [];
  }

  #rest(): void {
    if (!this.#isInStep && this.#running.length + this.#waiting.length === 0) this.#nextMs = Number.POSITIVE_INFINITY;
  }

  #emptyBlocks(): Block[] {
    const length = Math.floor(this.#profile.kvTokens / this.#blockTokens);
    return Array.from({ length }, () => ({ hash: undefined, references: 0 }));
  }
}

function tokensOf({ request, generated }: Running<EngineRequest>): number {
  return request.promptTokens + generated;
}

function isFinished({ request, generated }: Running<EngineRequest>): boolean {
  return generated >= request.outputTokens;
}
