/** A source of uniform numbers in [0, 1). */
export interface Random {
  next(): number;
}

/** A repeatable source (mulberry32): the same seed gives the same draws on every platform. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}

/** A source whose next numbers can be looked at and stay the next. */
export class PeekableRandom implements Random {
  readonly #source: Random;
  /** Looked at, not drawn yet. */
  readonly #ahead: number[] = [];

  constructor(source: Random) {
    this.#source = source;
  }

  next(): number {
    return this.#ahead.shift() ?? this.#source.next();
  }

  /** A source of the numbers that `next` will give. */
  peek(): Random {
    const ahead = this.#ahead;
    const source = this.#source;
    let seen = 0;
    return {
      next() {
        if (seen === ahead.length) ahead.push(source.next());
        return ahead[seen++] as number;
      },
    };
  }
}
