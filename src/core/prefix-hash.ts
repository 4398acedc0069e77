/** A prompt as a chain of block hashes: equal hash means equal text from the start up to that block's end. */
export interface Prefix {
  /** One hash per full block, shallow to deep. */
  readonly hashes: readonly number[];
  /** Prompt tokens a block stands for, as far as they are known. */
  readonly tokensPerBlock: number;
}

/** Text units (UTF-16) per block: about 64 tokens of English, a multiple of every engine's own block. */
export const BLOCK_UNITS = 256;

/**
 * Hashes a prompt in one pass, block by block. Each block's hash covers the one before it, so the
 * chain identifies whole prefixes. A hash has 52 bits of a state of 64, two lanes that each take two
 * units per multiplication: a collision inside one endpoint's index (at most about a million blocks)
 * has a probability near 1e-4 over its life, and costs one misrouted request when it comes.
 */
export class PrefixHasher {
  readonly #hashes: number[] = [];
  #low = 0x243f6a88;
  #high = 0x85a308d3;
  #filled = 0;
  #units = 0;

  /** @param scope What keeps caches apart: model, adapter, salt. Fields are told apart by place and length. */
  constructor(scope: readonly (string | undefined)[]) {
    for (const field of scope) {
      this.#absorb(field ?? "", 0, field?.length ?? 0);
      this.#mix(field?.length ?? ABSENT);
    }
  }

  /** Appends text; parts are told apart by length, so that ["ab"] and ["a", "b"] differ. */
  update(text: string): void {
    const { length } = text;
    for (let start = 0; start < length; ) {
      const end = Math.min(length, start + BLOCK_UNITS - this.#filled);
      this.#absorb(text, start, end);
      this.#filled += end - start;
      start = end;
      if (this.#filled === BLOCK_UNITS) this.#closeBlock();
    }
    this.#mix(length);
    this.#units += length;
  }

  /** @param promptTokens Spread evenly over the text: a block stands for its share of them. */
  finish(promptTokens: number): Prefix | undefined {
    if (this.#hashes.length === 0) return undefined;
    return { hashes: this.#hashes, tokensPerBlock: (promptTokens * BLOCK_UNITS) / this.#units };
  }

  /** The hot loop: state in locals, two units a round. A multiplication carries a difference up, the rotation back down. */
  #absorb(text: string, start: number, end: number): void {
    let low = this.#low;
    let high = this.#high;
    let at = start;
    for (const pairsEnd = end - 1; at < pairsEnd; at += 2) {
      const word = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16);
      low = Math.imul(low ^ word, LOW_FACTOR);
      low = (low << 15) | (low >>> 17);
      high = Math.imul(high + word, HIGH_FACTOR);
      high = (high << 13) | (high >>> 19);
    }
    this.#low = low;
    this.#high = high;
    if (at < end) this.#mix(text.charCodeAt(at));
  }

  /** One word more, outside the hot loop. */
  #mix(word: number): void {
    const low = Math.imul(this.#low ^ word, LOW_FACTOR);
    const high = Math.imul(this.#high + word, HIGH_FACTOR);
    this.#low = (low << 15) | (low >>> 17);
    this.#high = (high << 13) | (high >>> 19);
  }

  /** The hash is the state with every bit spread over all others; the state itself goes on. */
  #closeBlock(): void {
    const low = spread(this.#low ^ ((this.#high << 16) | (this.#high >>> 16)));
    const high = spread(this.#high ^ low);
    this.#hashes.push((high >>> 12) * 2 ** 32 + (low >>> 0));
    this.#filled = 0;
  }
}

/** Odd, with about half their bits set: the multipliers of MurmurHash3's 32-bit form. */
const LOW_FACTOR = 0xcc9e2d51;
const HIGH_FACTOR = 0x1b873593;

/** In place of a field's length: no string is that long. */
const ABSENT = -1;

/** The finaliser of MurmurHash3: a change of any bit changes each bit with a probability near one half. */
function spread(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
