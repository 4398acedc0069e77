/**
 * Follows a quantile of a stream of positive samples without keeping them: in the logarithm, each
 * sample pulls the value up by q or down by 1 - q of the step, and the step shrinks from a factor of
 * e to `MIN_STEP`. One wild sample moves it by one step, however wild it is, so stalls that only ever
 * add time do not drag it along.
 */
export class QuantileTracker {
  readonly #quantile: number;
  #log = 0;
  #samples = 0;

  /** @param quantile 0 to 1; 0.5 follows the median. */
  constructor(quantile: number) {
    this.#quantile = quantile;
  }

  get samples(): number {
    return this.#samples;
  }

  /** Natural logarithm of the value; 0 before any sample. */
  get log(): number {
    return this.#log;
  }

  observe(sample: number): void {
    const log = Math.log(sample);
    this.#samples++;
    if (this.#samples === 1) {
      this.#log = log;
      return;
    }
    const step = Math.max(MIN_STEP, 1 / this.#samples);
    const pull = log > this.#log ? this.#quantile : this.#quantile - 1;
    // Never past the sample: a tight stream of samples is met, not circled.
    const moved = this.#log + step * pull;
    this.#log = pull > 0 ? Math.min(moved, log) : Math.max(moved, log);
  }
}

/** Smallest step: 2 % a sample, so a change of hardware by a factor of 2 is followed within about 70 samples. */
const MIN_STEP = 0.02;
