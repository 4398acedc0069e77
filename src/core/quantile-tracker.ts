/**
 * Follows a quantile of a stream of positive samples, in the logarithm. The first `WARM_UP` samples are
 * kept and give it exactly, so that a wild first one (a cold start) is outvoted at once; from then on
 * each sample pulls the value up by q or down by 1 - q of `STEP` and is forgotten. One wild sample moves
 * it by one step, however wild it is, so stalls that only ever add time do not drag it along.
 */
export class QuantileTracker {
  readonly #quantile: number;
  /** Logarithms of the first samples, ascending. */
  readonly #first: number[] = [];
  #log = 0;
  #samples = 0;

  /** @param quantile 0 to 1; 0.5 follows the median. */
  constructor(quantile: number) {
    this.#quantile = quantile;
  }

  get samples(): number {
    return this.#samples;
  }

  /** From now on no sample is kept. */
  get isWarm(): boolean {
    return this.#samples >= WARM_UP;
  }

  /** Natural logarithm of the value; 0 before any sample. */
  get log(): number {
    return this.#log;
  }

  /** @param weight How far this sample pulls, in steps; the first samples all count the same. */
  observe(sample: number, weight = 1): void {
    const log = Math.log(sample);
    const isWarm = this.isWarm;
    this.#samples++;
    if (isWarm) {
      this.#step(log, weight);
      return;
    }
    this.#first.push(log);
    this.#first.sort((a, b) => a - b);
    this.#log = this.#first[Math.round(this.#quantile * (this.#first.length - 1))] as number;
  }

  /** What was seen is from now on told on another scale, on which all of it is more by this, as a logarithm. */
  shift(log: number): void {
    if (this.#samples === 0) return;
    this.#log += log;
    for (let i = 0; i < this.#first.length; i++) this.#first[i] = (this.#first[i] as number) + log;
  }

  #step(log: number, weight: number): void {
    const pull = log > this.#log ? this.#quantile : this.#quantile - 1;
    const moved = this.#log + STEP * weight * pull;
    // Never past the sample: a tight stream of samples is met, not circled.
    this.#log = pull > 0 ? Math.min(moved, log) : Math.max(moved, log);
  }
}

/** Enough for a quantile to within the spread of the samples over 3. */
const WARM_UP = 15;

/** 2 % a sample: a change of hardware by a factor of 2 is followed within about 70 samples. */
const STEP = 0.02;
