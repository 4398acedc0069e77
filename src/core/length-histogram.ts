/** Four bins an octave: a bin is 19 % wide, finer than the spread of any length estimate. */
const BINS_PER_OCTAVE = 4;
const BINS = BINS_PER_OCTAVE * 20;

/** The first length of each bin; one more ends the last. */
const FIRST_OF_BIN = Float64Array.from({ length: BINS + 1 }, (_, bin) => Math.ceil(2 ** (bin / BINS_PER_OCTAVE) - 1));

/** About a million tokens: longer outputs count as this long. */
const LONGEST_TOKENS = (FIRST_OF_BIN[BINS] as number) - 1;

/** What lies beyond a length. */
interface Tail {
  weight: number;
  excess: number;
}

/**
 * Lengths seen, in log-spaced bins that fade with `HALF_LIFE` completions, and the mean residual life
 * they give: E[X - n | X > n].
 */
export class LengthHistogram {
  readonly #weights = new Float64Array(BINS);
  readonly #sums = new Float64Array(BINS);
  /** Weight and token sum of the bins from an index upwards. */
  readonly #tailWeights = new Float64Array(BINS + 1);
  readonly #tailSums = new Float64Array(BINS + 1);
  /** The last answer: one object to spare the garbage, since every progress of every request asks. */
  readonly #tail: Tail = { weight: 0, excess: 0 };
  /** Weight of the next completion: growing it is the same as fading all the others. */
  #nextWeight = 1;

  /** An output of `tokens`, a whole number of them, was completed. */
  observe(tokens: number): void {
    const counted = Math.min(tokens, LONGEST_TOKENS);
    const bin = binOf(counted);
    const weight = this.#nextWeight;
    const sum = weight * counted;
    this.#weights[bin] = (this.#weights[bin] as number) + weight;
    this.#sums[bin] = (this.#sums[bin] as number) + sum;
    for (let from = 0; from <= bin; from++) {
      this.#tailWeights[from] = (this.#tailWeights[from] as number) + weight;
      this.#tailSums[from] = (this.#tailSums[from] as number) + sum;
    }
    this.#nextWeight *= GROWTH;
    if (this.#nextWeight > RESCALE_AT) this.#rescale();
  }

  /** Weight of all lengths, in recent completions. */
  get weight(): number {
    return (this.#tailWeights[0] as number) / this.#nextWeight;
  }

  /** Weight of the lengths beyond `tokens`, and the sum of (length - tokens) over them. Valid until the next call. */
  beyond(tokens: number): Readonly<Tail> {
    const bin = binOf(tokens);
    const tail = this.#tail;
    tail.weight = this.#tailWeights[bin + 1] as number;
    tail.excess = (this.#tailSums[bin + 1] as number) - tokens * tail.weight;
    this.#addAheadInBin(bin, tokens);
    tail.weight /= this.#nextWeight;
    tail.excess /= this.#nextWeight;
    return tail;
  }

  /**
   * The part of a bin that lies beyond `tokens`. Lengths are taken to be spread evenly around the bin's
   * mean, as far as the bin goes on the nearer side: exact before them and for an even spread.
   */
  #addAheadInBin(bin: number, tokens: number): void {
    const weight = this.#weights[bin] as number;
    if (weight === 0) return;
    const mean = (this.#sums[bin] as number) / weight;
    // A whole length n is the interval n - 0.5 to n + 0.5. No less than half: one length, up to rounding.
    const first = (FIRST_OF_BIN[bin] as number) - 0.5;
    const end = (FIRST_OF_BIN[bin + 1] as number) - 0.5;
    const spread = Math.max(0.5, Math.min(mean - first, end - mean));
    const part = Math.min(1, Math.max(0, (mean + spread - tokens - 0.5) / (2 * spread)));
    const meanExcess = part === 1 ? mean - tokens : (mean + spread + 0.5 - tokens) / 2;
    this.#tail.weight += weight * part;
    this.#tail.excess += weight * part * meanExcess;
  }

  #rescale(): void {
    for (const values of [this.#weights, this.#sums, this.#tailWeights, this.#tailSums]) {
      for (let bin = 0; bin < BINS; bin++) values[bin] = (values[bin] as number) / this.#nextWeight;
    }
    this.#nextWeight = 1;
  }
}

const HALF_LIFE = 1000;
const GROWTH = 2 ** (1 / HALF_LIFE);
/** Far from where doubles end, and forty half-lives from the last time. */
const RESCALE_AT = 2 ** 40;

function binOf(tokens: number): number {
  return Math.min(BINS - 1, Math.floor(Math.log2(tokens + 1) * BINS_PER_OCTAVE));
}
