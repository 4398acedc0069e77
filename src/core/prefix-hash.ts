/** A prompt as a chain of block hashes: equal hash means equal text from the start up to that block's end. */
export interface Prefix {
  /** One hash per full block, shallow to deep. */
  readonly hashes: readonly number[];
  /** Prompt tokens a block stands for, as far as they are known. */
  readonly tokensPerBlock: number;
}

/** Text units (UTF-16) per block: about 64 tokens of English, a multiple of every engine's own block. */
export const BLOCK_UNITS = 256;

/** Where text is laid out as numbers to be hashed. Hashers may share one if they take turns, each from `new` to `finish`. */
export interface TextRoom {
  /** Two UTF-16 units each; as many as make up whole blocks. */
  readonly words: Int32Array;
  /** Puts the units of a text there, from unit `at` on. It has room. */
  put(text: string, at: number): void;
}

/**
 * Hashes a prompt in one pass, block by block. Each block's hash covers the one before it, so the
 * chain identifies whole prefixes. A hash has 52 bits of a state of 128, and every unit enters two of
 * its four lanes: a collision inside one endpoint's index (at most about a million blocks) has a
 * probability near 1e-4 over its life, and costs one misrouted request when it comes.
 */
export class PrefixHasher {
  readonly #room: TextRoom;
  readonly #roomUnits: number;
  readonly #hashes: number[] = [];
  #evenLow = 0x243f6a88;
  #evenHigh = 0x85a308d3;
  #oddLow = 0x13198a2e;
  #oddHigh = 0x03707344;
  /** Units in the room, and those of them that are hashed: whole blocks. */
  #filled = 0;
  #hashed = 0;
  /** Of the whole text. */
  #units = 0;

  /** @param scope What keeps caches apart: model, adapter, salt. Fields are told apart by place and length. */
  constructor(scope: readonly (string | undefined)[], room: TextRoom = createTextRoom()) {
    this.#room = room;
    this.#roomUnits = 2 * room.words.length;
    for (const field of scope) {
      if (field !== undefined) for (let at = 0; at < field.length; at++) this.#mix(field.charCodeAt(at));
      this.#mix(field?.length ?? ABSENT);
    }
  }

  /** Appends text; parts are told apart by length, so that ["ab"] and ["a", "b"] differ. */
  update(text: string): void {
    const { length } = text;
    for (let start = 0; start < length; ) {
      const taken = Math.min(length - start, this.#roomUnits - this.#filled);
      this.#room.put(text.slice(start, start + taken), this.#filled);
      this.#filled += taken;
      start += taken;
      if (this.#filled - this.#hashed >= BLOCK_UNITS) this.#hashBlocks();
    }
    this.#mix(length);
    this.#units += length;
  }

  /** @param promptTokens Spread evenly over the text: a block stands for its share of them. */
  finish(promptTokens: number): Prefix | undefined {
    if (this.#hashes.length === 0) return undefined;
    return { hashes: this.#hashes, tokensPerBlock: (promptTokens * BLOCK_UNITS) / this.#units };
  }

  /**
   * The hot loop: state in locals, and four lanes, whose multiplications overlap. A multiplication carries a difference
   * up, the rotation back down.
   */
  #hashBlocks(): void {
    const { words } = this.#room;
    let evenLow = this.#evenLow;
    let evenHigh = this.#evenHigh;
    let oddLow = this.#oddLow;
    let oddHigh = this.#oddHigh;
    for (; this.#hashed + BLOCK_UNITS <= this.#filled; this.#hashed += BLOCK_UNITS) {
      const from = this.#hashed / 2;
      for (let at = from; at < from + BLOCK_WORDS; at += 2) {
        const even = words[at] as number;
        evenLow = Math.imul(evenLow ^ even, LOW_FACTOR);
        evenLow = (evenLow << 15) | (evenLow >>> 17);
        evenHigh = Math.imul(evenHigh + even, HIGH_FACTOR);
        evenHigh = (evenHigh << 13) | (evenHigh >>> 19);
        const odd = words[at + 1] as number;
        oddLow = Math.imul(oddLow ^ odd, LOW_FACTOR);
        oddLow = (oddLow << 15) | (oddLow >>> 17);
        oddHigh = Math.imul(oddHigh + odd, HIGH_FACTOR);
        oddHigh = (oddHigh << 13) | (oddHigh >>> 19);
      }
      this.#hashes.push(hashOf(evenLow ^ rotatedByHalf(oddLow), evenHigh ^ rotatedByHalf(oddHigh)));
    }
    this.#evenLow = evenLow;
    this.#evenHigh = evenHigh;
    this.#oddLow = oddLow;
    this.#oddHigh = oddHigh;
    if (this.#hashed === this.#roomUnits) {
      this.#hashed = 0;
      this.#filled = 0;
    }
  }

  /** One word more, outside the hot loop. */
  #mix(word: number): void {
    const low = Math.imul(this.#evenLow ^ word, LOW_FACTOR);
    const high = Math.imul(this.#evenHigh + word, HIGH_FACTOR);
    this.#evenLow = (low << 15) | (low >>> 17);
    this.#evenHigh = (high << 13) | (high >>> 19);
  }
}

/** Room for a few blocks, filled unit by unit, as it can be done anywhere. */
function createTextRoom(): TextRoom {
  const units = new Uint16Array(4 * BLOCK_UNITS);
  return {
    words: new Int32Array(units.buffer),
    put: (text, at) => {
      for (let i = 0; i < text.length; i++) units[at + i] = text.charCodeAt(i);
    },
  };
}

/** Two units each. */
const BLOCK_WORDS = BLOCK_UNITS / 2;

/** Odd, with about half their bits set: the multipliers of MurmurHash3's 32-bit form. */
const LOW_FACTOR = 0xcc9e2d51;
const HIGH_FACTOR = 0x1b873593;

/** In place of a field's length: no string is that long. */
const ABSENT = -1;

/** 52 bits of a state of which every bit is spread over all others. The state itself goes on. */
function hashOf(lows: number, highs: number): number {
  const low = spread(lows ^ rotatedByHalf(highs));
  const high = spread(highs ^ low);
  return (high >>> 12) * 2 ** 32 + (low >>> 0);
}

function rotatedByHalf(lane: number): number {
  return (lane << 16) | (lane >>> 16);
}

/** The finaliser of MurmurHash3: a change of any bit changes each bit with a probability near one half. */
function spread(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
