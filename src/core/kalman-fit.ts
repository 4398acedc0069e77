/** One unknown of a fit. */
export interface Unknown {
  /** How far from 0 it is expected to be, above 0. */
  readonly spread: number;
  /** It is never believed to be further from 0 than this. */
  readonly bound: number;
}

/**
 * Unknowns learned from what each adds to observed values: least squares with a ridge, one observation at a time
 * (a Kalman filter of constants). Before anything was seen each is 0, give or take its spread; what the observations
 * do not tell apart stays shrunk towards there.
 *
 *     variance = noise^2 wildness + u' P u
 *     unknowns += P u / variance x residual      P -= P u u' P / variance
 *
 * u: by how much the observed value moves with each unknown. P: covariance of the unknowns. Wildness: the square of
 * how many times a residual is larger than residuals usually are, at least 1, so that the wildest move least.
 */
export class KalmanFit {
  readonly #unknowns: readonly Unknown[];
  readonly #priorVariances: readonly number[];
  readonly #values: number[];
  readonly #covariance: readonly number[][];
  /** Mean size of the residuals. */
  #usualResidual = FIRST_RESIDUAL;

  constructor(unknowns: readonly Unknown[]) {
    this.#unknowns = unknowns;
    this.#priorVariances = unknowns.map(({ spread }) => spread ** 2);
    this.#values = unknowns.map(() => 0);
    this.#covariance = this.#priorVariances.map((variance, i) => unknowns.map((_, j) => (i === j ? variance : 0)));
  }

  /** Shrunk towards 0 by what is not known of it. */
  value(i: number): number {
    return this.#values[i] as number;
  }

  /** How much is known of an unknown, 0 to 1. */
  known(i: number): number {
    return 1 - (this.#covariance[i]?.[i] as number) / (this.#priorVariances[i] as number);
  }

  /** What an unknown is where `means`, and not 0, are what was expected beforehand. */
  valueFrom(i: number, means: readonly number[]): number {
    const row = this.#covariance[i] as readonly number[];
    let value = this.value(i);
    for (let j = 0; j < row.length; j++) {
      value += ((row[j] as number) / (this.#priorVariances[j] as number)) * (means[j] as number);
    }
    return value;
  }

  /** An unknown is `value`, give or take `spread`, whatever was learned of it. */
  set(i: number, value: number, spread: number): void {
    this.#values[i] = value;
    for (const row of this.#covariance) row[i] = 0;
    this.#covariance[i]?.fill(0);
    (this.#covariance[i] as number[])[i] = spread ** 2;
  }

  /**
   * @param slopes By how much the observed value moves with each unknown.
   * @param residual The observed value less what the unknowns of `valueFrom(means)` give.
   * @param noise Spread of that residual if the unknowns were right.
   */
  observe(slopes: readonly number[], residual: number, noise: number, means: readonly number[]): void {
    const moves = this.#covariance.map((row) => dot(row, slopes));
    const doubt = dot(slopes, moves);
    const isNews = MEMORY * doubt > Math.min(noise ** 2, this.#priorDoubt(slopes));
    const variance = noise ** 2 * this.#wildness(residual) + doubt;
    let step = residual / variance;
    // As the covariance shrinks so does what `means` add, and the values take that over.
    if (isNews) {
      for (let i = 0; i < moves.length; i++) {
        step += ((slopes[i] as number) * (this.valueFrom(i, means) - this.value(i))) / variance;
      }
    }
    for (let i = 0; i < moves.length; i++) {
      const move = moves[i] as number;
      const { bound } = this.#unknowns[i] as Unknown;
      this.#values[i] = Math.min(bound, Math.max(-bound, this.value(i) + move * step));
      const row = this.#covariance[i] as number[];
      for (let j = 0; isNews && j < row.length; j++) {
        row[j] = (row[j] as number) - (move * (moves[j] as number)) / variance;
      }
    }
  }

  /** Variance of such a value before anything was seen. */
  #priorDoubt(slopes: readonly number[]): number {
    let doubt = 0;
    for (let i = 0; i < slopes.length; i++) doubt += (slopes[i] as number) ** 2 * (this.#priorVariances[i] as number);
    return doubt;
  }

  /** How many times less a residual says than a usual one: at least 1. */
  #wildness(residual: number): number {
    const usual = this.#usualResidual;
    const size = Math.abs(residual);
    this.#usualResidual += (Math.min(size, 3 * usual) - usual) / RESIDUALS;
    return Math.max(1, size / usual) ** 2;
  }
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

/**
 * What so many samples tell is as sure as anything gets: then the covariance shrinks no more, and an engine that
 * changes is followed within about as many. Only what is looked at grows old: where load stays even for hours, what
 * is known of other loads is kept.
 */
const MEMORY = 64;

/** Residuals that the usual one is the mean of, and what it is taken to be at first. */
const RESIDUALS = 32;
const FIRST_RESIDUAL = 0.1;
