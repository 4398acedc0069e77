/** Hash of a sequence of names: two independent 32-bit lanes. */
export interface HashState {
  readonly low: number;
  readonly high: number;
}

const START: HashState = { low: 0x243f6a88, high: 0x85a308d3 };

/** Outside the range of a UTF-16 unit, so that ("ab", "c") and ("a", "bc") differ. */
const END_OF_NAME = 0x10000;

/** The hash of the names behind `before`, and `name`. */
export function absorb(name: string, before: HashState = START): HashState {
  let { low, high } = before;
  for (let i = 0; i <= name.length; i++) {
    const unit = i < name.length ? name.charCodeAt(i) : END_OF_NAME;
    // Xor, odd factor and xor-shift each can be undone, so no two states fall together on the way.
    low = Math.imul(low ^ unit, 0x5bd1e995);
    low ^= low >>> 15;
    high = Math.imul(high ^ unit, 0x27d4eb2f);
    high ^= high >>> 13;
  }
  return { low, high };
}

/** A number strictly between 0 and 1, spread evenly over the sequences of names: 52 bits and a half step. */
export function uniform({ low, high }: HashState): number {
  return ((avalanche(high) >>> 12) * 2 ** 32 + avalanche(low) + 0.5) / 2 ** 52;
}

/** Every bit of the input moves every bit of the output with a chance near one half (factors: Wellons' search, 2018). */
function avalanche(lane: number): number {
  let mixed = Math.imul(lane ^ (lane >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
