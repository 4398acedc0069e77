import { MinHeap } from "./min-heap.ts";
import type { EngineRequest, Sequence } from "./sequence.ts";

/**
 * The sequences that decode: each gets one token per step. A step does not touch them one by one. All count from the
 * same number of steps, and a step visits only those that come to the edge of a block or to their end with it.
 */
export class DecodeBatch<Request extends EngineRequest> {
  readonly #blockTokens: number;
  #steps = 0;
  #size = 0;
  #contextTokens = 0;
  /** By the step that takes them over the edge of a block, modulo the block: in order of admission. */
  readonly #atEdge: Sequence<Request>[][];
  readonly #byEnd = new MinHeap<Sequence<Request>>((a, b) => {
    const [endA, endB] = [lastStep(a), lastStep(b)];
    return endA === endB ? a.admission < b.admission : endA < endB;
  });

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
    this.#atEdge = Array.from({ length: blockTokens }, () => []);
  }

  get size(): number {
    return this.#size;
  }

  /** Tokens of all members, those of the next step's input included. */
  get contextTokens(): number {
    return this.#contextTokens;
  }

  /** Members whose computed tokens fill whole blocks, in order of admission: the next step needs a block for each. */
  get atEdge(): readonly Sequence<Request>[] {
    return this.#edgeAfter(0);
  }

  /**
   * Takes in a sequence of which all tokens but the last are computed, and which has more to generate. Prompts end in
   * order of admission, so it was admitted after all who are here.
   */
  add(sequence: Sequence<Request>): void {
    sequence.decodeOrigin = this.#steps - sequence.generatedTokens;
    this.#size++;
    this.#contextTokens += sequence.tokens;
    this.#byEnd.push(sequence);
    this.#edgePeers(sequence).push(sequence);
  }

  /** Lets a member go and brings its counts up to date. */
  remove(sequence: Sequence<Request>): void {
    this.#byEnd.remove(sequence);
    this.#release(sequence);
  }

  /** Everyone gets `steps` tokens, by default one. */
  step(steps = 1): void {
    this.#steps += steps;
    this.#contextTokens += steps * this.#size;
  }

  /** Steps until somebody is at an edge, `limit` at most. */
  stepsToEdge(limit: number): number {
    let steps = 1;
    while (steps < limit && this.#edgeAfter(steps).length === 0) steps++;
    return steps;
  }

  /** Lets the first member go that has all its tokens, in order of admission; undefined: there is none. */
  takeFinished(): Sequence<Request> | undefined {
    const first = this.#byEnd.peek();
    if (first === undefined || lastStep(first) > this.#steps) return undefined;
    this.#byEnd.pop();
    this.#release(first);
    return first;
  }

  generatedTokens(sequence: Sequence<Request>): number {
    return sequence.decodeOrigin === undefined ? sequence.generatedTokens : this.#steps - sequence.decodeOrigin;
  }

  /** Steps until a member ends or the one after needs more than is left of `freeBlocks`; the first has its blocks. */
  stepsWithin(freeBlocks: number): number {
    const first = this.#byEnd.peek();
    if (first === undefined) return 1;
    const steps = lastStep(first) - this.#steps;
    const blocksAtMost = this.#size * Math.ceil((steps - 1) / this.#blockTokens);
    return blocksAtMost <= freeBlocks ? steps : this.#stepsUntilFull(freeBlocks, steps);
  }

  #stepsUntilFull(freeBlocks: number, limit: number): number {
    let left = freeBlocks;
    for (let steps = 1; steps < limit; steps++) {
      left -= this.#edgeAfter(steps).length;
      if (left < 0) return steps;
    }
    return limit;
  }

  /** Those who are at an edge in so many steps. */
  #edgeAfter(steps: number): Sequence<Request>[] {
    return this.#atEdge[(this.#steps + steps) % this.#blockTokens] as Sequence<Request>[];
  }

  #release(sequence: Sequence<Request>): void {
    const peers = this.#edgePeers(sequence);
    peers.splice(peers.indexOf(sequence), 1);
    sequence.generatedTokens = this.generatedTokens(sequence);
    sequence.computedTokens = sequence.tokens - 1;
    sequence.decodeOrigin = undefined;
    this.#size--;
    this.#contextTokens -= sequence.tokens;
  }

  /** Computed tokens, one less than all, are a multiple of the block at the same steps for all of them. */
  #edgePeers({ request, decodeOrigin }: Sequence<Request>): Sequence<Request>[] {
    const edge = (decodeOrigin as number) - request.promptTokens + 1;
    const remainder = edge % this.#blockTokens;
    return this.#atEdge[remainder < 0 ? remainder + this.#blockTokens : remainder] as Sequence<Request>[];
  }
}

/** The batch's count of steps when a member has all its tokens. */
function lastStep({ request, decodeOrigin }: Sequence<EngineRequest>): number {
  return (decodeOrigin as number) + request.outputTokens;
}
