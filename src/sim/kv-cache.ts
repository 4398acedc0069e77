/** No hash: the block is empty, partly filled or a copy of one that is already indexed. */
const UNINDEXED = Number.NaN;

/**
 * The KV cache of an engine: a pool of blocks with reference counts, and a prefix cache over the full ones.
 * A block that nobody refers to keeps its content until it is the least recently released and its room is
 * needed. All operations take time in proportion to the blocks they touch.
 */
export class KvCache {
  readonly blockTokens: number;
  readonly totalBlocks: number;

  readonly #references: Int32Array;
  readonly #hashOf: Float64Array;
  readonly #blockOf = new Map<number, number>();

  /** Unreferenced blocks as a ring through the sentinel `totalBlocks`, least recently released first. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  #freeBlocks: number;

  constructor(capacityTokens: number, blockTokens: number) {
    this.blockTokens = blockTokens;
    this.totalBlocks = Math.floor(capacityTokens / blockTokens);
    this.#references = new Int32Array(this.totalBlocks);
    this.#hashOf = new Float64Array(this.totalBlocks).fill(UNINDEXED);
    this.#freeBlocks = this.totalBlocks;
    const ring = this.totalBlocks + 1;
    this.#next = Int32Array.from({ length: ring }, (_, block) => (block + 1) % ring);
    this.#previous = Int32Array.from({ length: ring }, (_, block) => (block + ring - 1) % ring);
  }

  /** Blocks that nobody refers to, cached ones included. */
  get freeBlocks(): number {
    return this.#freeBlocks;
  }

  /** Referenced share, 0 to 1. */
  get usedRatio(): number {
    return this.totalBlocks === 0 ? 0 : 1 - this.#freeBlocks / this.totalBlocks;
  }

  /** Blocks that `tokens` tokens take, the last one possibly partly. */
  blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.blockTokens);
  }

  /** Leading blocks of the chain that are cached, at most `limit`. */
  match(hashes: readonly number[], limit: number): number {
    const end = Math.min(hashes.length, limit);
    let hits = 0;
    while (hits < end && this.#blockOf.has(hashes[hits] as number)) hits++;
    return hits;
  }

  /**
   * Refers to the cached blocks at the head of the chain, at most `hitLimit`, and appends them to `blocks`,
   * provided that the rest of `wholeBlocks` would then fit as well: a prompt that enters by its first chunk
   * alone would run into its neighbours' room (vLLM's `scheduler_reserve_full_isl`). It reserves nothing.
   *
   * @returns How many blocks were hit; undefined: it does not fit and nothing changed.
   */
  enter(hashes: readonly number[], hitLimit: number, wholeBlocks: number, blocks: number[]): number | undefined {
    const hits = this.match(hashes, hitLimit);
    if (this.#freeBlocks < wholeBlocks - hits) return undefined;
    let unreferencedHits = 0;
    for (let i = 0; i < hits; i++) {
      if (this.#references[this.#indexed(hashes, i)] === 0) unreferencedHits++;
    }
    if (this.#freeBlocks - unreferencedHits < wholeBlocks - hits) return undefined;
    for (let i = 0; i < hits; i++) {
      const block = this.#indexed(hashes, i);
      if (this.#references[block] === 0) this.#unlink(block);
      this.#references[block] = (this.#references[block] as number) + 1;
      blocks.push(block);
    }
    return hits;
  }

  /** Appends `count` empty blocks to `blocks`, evicting what was released longest ago. False: no room, nothing changed. */
  allocate(count: number, blocks: number[]): boolean {
    if (this.#freeBlocks < count) return false;
    for (let i = 0; i < count; i++) {
      const block = this.#next[this.totalBlocks] as number;
      this.#unlink(block);
      this.#forget(block);
      this.#references[block] = 1;
      blocks.push(block);
    }
    return true;
  }

  /** Makes a full and computed block hittable. A second copy of the same content stays private to its owner. */
  index(block: number, hash: number): void {
    if (this.#blockOf.has(hash)) return;
    this.#hashOf[block] = hash;
    this.#blockOf.set(hash, block);
  }

  /** Gives up one reference to each block, deep ones first, so that they are evicted first; empties `blocks`. */
  release(blocks: number[]): void {
    for (let block = blocks.pop(); block !== undefined; block = blocks.pop()) {
      const left = (this.#references[block] as number) - 1;
      if (left < 0) throw new Error(`KV block ${block} was released twice`);
      this.#references[block] = left;
      if (left === 0) this.#append(block);
    }
  }

  #indexed(hashes: readonly number[], depth: number): number {
    return this.#blockOf.get(hashes[depth] as number) as number;
  }

  #forget(block: number): void {
    const hash = this.#hashOf[block] as number;
    if (Number.isNaN(hash)) return;
    this.#blockOf.delete(hash);
    this.#hashOf[block] = UNINDEXED;
  }

  #unlink(block: number): void {
    const previous = this.#previous[block] as number;
    const next = this.#next[block] as number;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#freeBlocks--;
  }

  #append(block: number): void {
    const last = this.#previous[this.totalBlocks] as number;
    this.#next[last] = block;
    this.#previous[block] = last;
    this.#next[block] = this.totalBlocks;
    this.#previous[this.totalBlocks] = block;
    this.#freeBlocks++;
  }
}
