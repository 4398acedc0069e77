import type { Prefix } from "./prefix-hash.ts";

/**
 * Which prompt blocks one endpoint is believed to hold, from what was sent there: least recently used
 * blocks go first. Blocks of one prompt are touched deep to shallow, so a block is never forgotten
 * before the ones behind it, as in the engines' own caches.
 */
export class PrefixIndex {
  /** Tokens of each block by its hash, least recently used first. */
  readonly #blocks = new Map<number, number>();
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
    this.#tokens = 0;
  }

  #touch(hash: number, blockTokens: number): void {
    this.#drop(hash);
    this.#blocks.set(hash, blockTokens);
    this.#tokens += blockTokens;
  }

  #drop(hash: number): void {
    this.#tokens -= this.#blocks.get(hash) ?? 0;
    this.#blocks.delete(hash);
  }

  #evict(): void {
    for (const hash of this.#blocks.keys()) {
      if (this.#tokens <= this.#capacityTokens) return;
      this.#drop(hash);
    }
  }
}

/** A 40 GB accelerator with an 8B model; too small only costs hits, too large promises some that are gone. */
const DEFAULT_CAPACITY_TOKENS = 131_072;

/** An engine's own block. Text of 256 units is never this little in truth; it bounds the index when a count is wrong. */
const MIN_BLOCK_TOKENS = 16;
