import { HashSlots, type Prefix } from "../../core/index.ts";

/**
 * Which prompt blocks one endpoint is believed to hold, from what was sent there: least recently used
 * blocks go first. Blocks of one prompt are touched deep to shallow, so a block is never forgotten
 * before the ones behind it, as in the engines' own caches.
 */
export class PrefixIndex {
  readonly #slots = new HashSlots();
  /** By slot: tokens of the block, and its neighbours in order of use. */
  #blockTokens = new Int32Array(0);
  #older = new Int32Array(0);
  #newer = new Int32Array(0);
  #oldest = NONE;
  #newest = NONE;
  #tokens = 0;
  #capacityTokens: number;

  /** @param capacityTokens Size of the endpoint's KV cache; undefined: unknown, a small one is assumed. */
  constructor(capacityTokens: number | undefined) {
    this.#capacityTokens = capacityTokens ?? DEFAULT_CAPACITY_TOKENS;
  }

  /** Blocks held. */
  get size(): number {
    return this.#slots.size;
  }

  /** Prompt tokens of the blocks held; never above the capacity. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Prompt tokens that can be held. */
  get capacityTokens(): number {
    return this.#capacityTokens;
  }

  resize(capacityTokens: number | undefined): void {
    this.#capacityTokens = capacityTokens ?? DEFAULT_CAPACITY_TOKENS;
    this.#evict();
  }

  /** Prompt tokens that match from the start. Logarithmic in the prompt: what holds a block holds all before it. */
  matchedTokens({ hashes, tokensPerBlock }: Prefix): number {
    return Math.floor(this.#slots.leadOf(hashes, hashes.length) * tokensPerBlock);
  }

  /** The prompt was sent there. Of one longer than the capacity, the start is kept. */
  insert(prefix: Prefix): void {
    const { hashes } = prefix;
    const blockTokens = Math.max(MIN_BLOCK_TOKENS, Math.round(prefix.tokensPerBlock));
    const fitting = Math.min(hashes.length, Math.floor(this.#capacityTokens / blockTokens));
    for (let depth = fitting - 1; depth >= 0; depth--) this.#touch(hashes[depth] as number, blockTokens);
    this.#evict();
  }

  /** What would go first, until `tokens` are gone: the block's hash and its tokens. */
  visitOldest(tokens: number, visit: (hash: number, blockTokens: number) => void): void {
    let left = tokens;
    for (let slot = this.#oldest; slot !== NONE && left > 0; slot = this.#newer[slot] as number) {
      const blockTokens = this.#blockTokens[slot] as number;
      visit(this.#slots.hashAt(slot), blockTokens);
      left -= blockTokens;
    }
  }

  /** The engine restarted or dropped its cache. */
  clear(): void {
    this.#slots.clear();
    this.#oldest = NONE;
    this.#newest = NONE;
    this.#tokens = 0;
  }

  #touch(hash: number, blockTokens: number): void {
    let slot = this.#slots.slotOf(hash);
    if (slot === NONE) {
      slot = this.#slots.add(hash);
      if (slot >= this.#older.length) this.#grow();
    } else {
      this.#unlink(slot);
    }
    this.#blockTokens[slot] = blockTokens;
    this.#tokens += blockTokens;
    this.#older[slot] = this.#newest;
    this.#newer[slot] = NONE;
    if (this.#newest === NONE) this.#oldest = slot;
    else this.#newer[this.#newest] = slot;
    this.#newest = slot;
  }

  #evict(): void {
    while (this.#tokens > this.#capacityTokens) {
      const slot = this.#oldest;
      this.#unlink(slot);
      this.#slots.remove(slot);
    }
  }

  #unlink(slot: number): void {
    const older = this.#older[slot] as number;
    const newer = this.#newer[slot] as number;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
    this.#tokens -= this.#blockTokens[slot] as number;
  }

  #grow(): void {
    const { capacity } = this.#slots;
    this.#blockTokens = enlarged(this.#blockTokens, capacity);
    this.#older = enlarged(this.#older, capacity);
    this.#newer = enlarged(this.#newer, capacity);
  }
}

function enlarged(values: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(length);
  larger.set(values);
  return larger;
}

/** In place of a slot. */
const NONE = -1;

/** A 40 GB accelerator with an 8B model; too small only costs hits, too large promises some that are gone. */
const DEFAULT_CAPACITY_TOKENS = 131_072;

/** An engine's own block. Text of 256 units is never this little in truth; it bounds the index when a count is wrong. */
const MIN_BLOCK_TOKENS = 16;
