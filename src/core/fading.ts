/**
 * What is left of sums that fade, each since a moment of its own, where all of one time constant T are asked for at the
 * same moments: one exponential serves them all, by
 *
 *     exp((at - now) / T) = exp((at - tick) / T) exp((tick - now) / T)
 *
 * where a sum is kept with its first factor until the next tick, and the second is the same for all.
 */
export class Fading {
  readonly #timeConstantMs: number;
  #nowMs = 0;
  #tickMs = 0;
  #leftSinceTick = 1;

  constructor(timeConstantMs: number) {
    this.#timeConstantMs = timeConstantMs;
  }

  /** The last tick before the time that it was moved to; they come once in each time constant. */
  get tickMs(): number {
    return this.#tickMs;
  }

  /** What is left then of what was whole at that tick. */
  get leftSinceTick(): number {
    return this.#leftSinceTick;
  }

  /** From here on all is as of `nowMs`: that is worked out once for all sums. */
  moveTo(nowMs: number): void {
    if (nowMs !== this.#nowMs) this.#move(nowMs);
  }

  /** What is left at `nowMs` of what was whole at `atMs`. */
  left(atMs: number, nowMs: number): number {
    return Math.exp((atMs - nowMs) / this.#timeConstantMs);
  }

  #move(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#tickMs = Math.floor(nowMs / this.#timeConstantMs) * this.#timeConstantMs;
    this.#leftSinceTick = this.left(this.#tickMs, nowMs);
  }
}
