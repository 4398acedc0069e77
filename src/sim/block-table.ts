const NONE = -1;
/** No hash is not a number, so that it can mark the empty slots. */
const EMPTY = Number.NaN;

/**
 * Which block has the content of a hash: a hash table with linear probing for a known number of blocks, at most half
 * full. A `Map` does the same at several times the cost, and long prompts are thousands of blocks.
 */
export class BlockTable {
  readonly #hashes: Float64Array;
  readonly #blocks: Int32Array;
  readonly #mask: number;
  readonly #shift: number;

  constructor(blocks: number) {
    const bits = Math.max(1, Math.ceil(Math.log2(2 * blocks + 1)));
    this.#hashes = new Float64Array(2 ** bits).fill(EMPTY);
    this.#blocks = new Int32Array(2 ** bits);
    this.#mask = 2 ** bits - 1;
    this.#shift = 32 - bits;
  }

  /** -1: there is none. */
  get(hash: number): number {
    const slot = this.#find(hash);
    return this.#hashes[slot] === hash ? (this.#blocks[slot] as number) : NONE;
  }

  /** False: another block has it, and keeps it. */
  add(hash: number, block: number): boolean {
    const slot = this.#find(hash);
    if (this.#hashes[slot] === hash) return false;
    this.#hashes[slot] = hash;
    this.#blocks[slot] = block;
    return true;
  }

  delete(hash: number): void {
    let hole = this.#find(hash);
    if (this.#hashes[hole] !== hash) return;
    // Whoever stands behind the hole and could have stood in it moves up, so that no search ends too early.
    for (let slot = this.#after(hole); !Number.isNaN(this.#hashes[slot]); slot = this.#after(slot)) {
      const moved = this.#hashes[slot] as number;
      const [distance, gap] = [(slot - this.#home(moved)) & this.#mask, (slot - hole) & this.#mask];
      if (distance < gap) continue;
      this.#hashes[hole] = moved;
      this.#blocks[hole] = this.#blocks[slot] as number;
      hole = slot;
    }
    this.#hashes[hole] = EMPTY;
  }

  /** Its slot, or the empty one where it would go. */
  #find(hash: number): number {
    let slot = this.#home(hash);
    for (;;) {
      const found = this.#hashes[slot] as number;
      if (found === hash || Number.isNaN(found)) return slot;
      slot = this.#after(slot);
    }
  }

  #after(slot: number): number {
    return (slot + 1) & this.#mask;
  }

  /** Both halves of the integer, spread by the golden ratio (Knuth, vol. 3, 6.4); the high bits are the good ones. */
  #home(hash: number): number {
    return Math.imul(hash ^ Math.imul(hash / 2 ** 32, 0x85ebca6b), 0x9e3779b1) >>> this.#shift;
  }
}
