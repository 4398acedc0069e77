import { BlockTable } from "./block-table.ts";

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
  readonly #blockOf: BlockTable;

  /** Unreferenced blocks as a ring through the sentinel `totalBlocks`, least recently released first. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  #freeBlocks: number;

  constructor(capacityTokens: number, blockTokens: number) {
    this.blockTokens = blockTokens;
    this.totalBlocks = Math.floor(capacityTokens / blockTokens);
    this.#references = new Int32Array(this.totalBlocks);
    this.#hashOf = new Float64Array(this.totalBlocks).fill(UNINDEXED);
    this.#blockOf = new BlockTable(this.totalBlocks);
    this.#freeBlocks = this.totalBlocks;
    const ring = this.totalBlocks + 1;
    this.#next = new Int32Array(ring);
    this.#previous = new Int32Array(ring);
    for (let block = 0; block < ring; block++) this.#link(block, (block + 1) % ring);
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
    while (hits < end && this.#blockOf.get(hashes[hits] as number) >= 0) hits++;
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
    const before = blocks.length;
    const unreferencedHits = this.#appendHits(hashes, hitLimit, blocks);
    const hits = blocks.length - before;
    if (this.#freeBlocks - unreferencedHits < wholeBlocks - hits) {
      blocks.length = before;
      return undefined;
    }
    for (let i = before; i < blocks.length; i++) this.#refer(blocks[i] as number);
    return hits;
  }

  /** Appends `count` empty blocks to `blocks`, evicting what was released longest ago. False: no room, nothing changed. */
  allocate(count: number, blocks: number[]): boolean {
    if (this.#freeBlocks < count) return false;
    let block = this.#next[this.totalBlocks] as number;
    for (let i = 0; i < count; i++) {
      this.#forget(block);
      this.#references[block] = 1;
      blocks.push(block);
      block = this.#next[block] as number;
    }
    this.#link(this.totalBlocks, block);
    this.#freeBlocks -= count;
    return true;
  }

  /** Makes a full and computed block hittable. A second copy of the same content stays private to its owner. */
  index(block: number, hash: number): void {
    if (this.#blockOf.add(hash, block)) this.#hashOf[block] = hash;
  }

  /** Gives up one reference to each block, deep ones first, so that they are evicted first; empties `blocks`. */
  release(blocks: number[]): void {
    let last = this.#previous[this.totalBlocks] as number;
    for (let block = blocks.pop(); block !== undefined; block = blocks.pop()) {
      const left = (this.#references[block] as number) - 1;
      if (left < 0) throw new Error(`KV block ${block} was released twice`);
      this.#references[block] = left;
      if (left > 0) continue;
      this.#link(last, block);
      last = block;
      this.#freeBlocks++;
    }
    this.#link(last, this.totalBlocks);
  }

  /** Returns how many of the hits nobody refers to. */
  #appendHits(hashes: readonly number[], limit: number, blocks: number[]): number {
    const end = Math.min(hashes.length, limit);
    let unreferenced = 0;
    for (let depth = 0; depth < end; depth++) {
      const block = this.#blockOf.get(hashes[depth] as number);
      if (block < 0) break;
      if (this.#references[block] === 0) unreferenced++;
      blocks.push(block);
    }
    return unreferenced;
  }

  #refer(block: number): void {
    if (this.#references[block] === 0) {
      this.#link(this.#previous[block] as number, this.#next[block] as number);
      this.#freeBlocks--;
    }
    this.#references[block] = (this.#references[block] as number) + 1;
  }

  #forget(block: number): void {
    const hash = this.#hashOf[block] as number;
    if (Number.isNaN(hash)) return;
    this.#blockOf.delete(hash);
    this.#hashOf[block] = UNINDEXED;
  }

  #link(block: number, next: number): void {
    this.#next[block] = next;
    this.#previous[next] = block;
  }
}
