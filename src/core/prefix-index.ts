import type { Prefix } from "./prefix-hash.ts";

/** A block in the order of use. */
interface Block {
  readonly hash: number;
  tokens: number;
  older: Block;
  newer: Block;
}

/**
 * Which prompt blocks one endpoint is believed to hold, from what was sent there: least recently used
 * blocks go first. Blocks of one prompt are touched deep to shallow, so a block is never forgotten
 * before the ones behind it, as in the engines' own caches.
 */
export class PrefixIndex {
  readonly #blocks = new Map<number, Block>();
  /**
   * A ring of all blocks in order of use, through this end mark: its `newer` is the oldest block. A `Map` keeps an
   * order too, but finding its first entry walks over all that were deleted before it.
   */
  readonly #end: Block = endMark();
  #tokens = 0;
  #capacityTokens: number;

  /** @param capacityTokens Size of the endpoint's KV cache; undefined: unknown, a small one is assumed. */
  constructor(capacityTokens: number | undefined) {
    this.#capacityTokens = capacityTokens ?? DEFAULT_CAPACITY_TOKENS;
  }

  /** Blocks held. */
  get size(): number {
    return this.#blocks.size;
  }

  /** Prompt tokens of the blocks held; never above the capacity. */
  get tokens(): number {
    return this.#tokens;
  }

  resize(capacityTokens: number | undefined): void {
    this.#capacityTokens = capacityTokens ?? DEFAULT_CAPACITY_TOKENS;
    this.#evict();
  }

  /** Prompt tokens that match from the start. Logarithmic in the prompt: what holds a block holds all before it. */
  matchedTokens(prefix: Prefix): number {
    const { hashes } = prefix;
    let held = 0;
    let missing = hashes.length;
    while (held < missing) {
      const middle = (held + missing) >>> 1;
      if (this.#blocks.has(hashes[middle] as number)) held = middle + 1;
      else missing = middle;
    }
    return Math.floor(held * prefix.tokensPerBlock);
  }

  /** The prompt was sent there. Of one longer than the capacity, the start is kept. */
  insert(prefix: Prefix): void {
    const { hashes } = prefix;
    const blockTokens = Math.max(MIN_BLOCK_TOKENS, Math.round(prefix.tokensPerBlock));
    const fitting = Math.min(hashes.length, Math.floor(this.#capacityTokens / blockTokens));
    for (let depth = fitting - 1; depth >= 0; depth--) this.#touch(hashes[depth] as number, blockTokens);
    this.#evict();
  }

  /** The engine restarted or dropped its cache. */
  clear(): void {
    this.#blocks.clear();
    this.#end.older = this.#end;
    this.#end.newer = this.#end;
    this.#tokens = 0;
  }

  #touch(hash: number, blockTokens: number): void {
    const end = this.#end;
    let block = this.#blocks.get(hash);
    if (block === undefined) {
      block = { hash, tokens: blockTokens, older: end, newer: end };
      this.#blocks.set(hash, block);
      this.#tokens += blockTokens;
    } else {
      unlink(block);
      this.#tokens += blockTokens - block.tokens;
      block.tokens = blockTokens;
    }
    block.newer = end;
    block.older = end.older;
    end.older.newer = block;
    end.older = block;
  }

  #evict(): void {
    while (this.#tokens > this.#capacityTokens) {
      const oldest = this.#end.newer;
      unlink(oldest);
      this.#blocks.delete(oldest.hash);
      this.#tokens -= oldest.tokens;
    }
  }
}

function unlink(block: Block): void {
  block.older.newer = block.newer;
  block.newer.older = block.older;
}

function endMark(): Block {
  const mark = { hash: Number.NaN, tokens: 0 } as Block;
  mark.older = mark;
  mark.newer = mark;
  return mark;
}

/** A 40 GB accelerator with an 8B model; too small only costs hits, too large promises some that are gone. */
const DEFAULT_CAPACITY_TOKENS = 131_072;

/** An engine's own block. Text of 256 units is never this little in truth; it bounds the index when a count is wrong. */
const MIN_BLOCK_TOKENS = 16;
