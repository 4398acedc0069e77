/**
 * Steps of one and the same batch in a row. Each takes `growthMs` longer than the one before it, since every sequence
 * reads one token more: the end of step n, from 1, is at start + n first + growth n (n - 1) / 2.
 */
export class StepRun {
  readonly #startMs: number;
  readonly #firstMs: number;
  readonly #growthMs: number;
  #steps: number;
  #endMs: number;

  constructor(startMs: number, firstMs: number, growthMs: number, steps: number) {
    this.#startMs = startMs;
    this.#firstMs = firstMs;
    this.#growthMs = growthMs;
    this.#steps = steps;
    this.#endMs = this.#endOf(steps);
  }

  get steps(): number {
    return this.#steps;
  }

  get endMs(): number {
    return this.#endMs;
  }

  /** Steps that end before `nowMs`, the last one aside. */
  stepsBefore(nowMs: number): number {
    const last = this.#steps - 1;
    if (last === 0) return 0;
    if (nowMs > this.#endOf(last)) return last;
    // The root of the parabola may be off by rounding; the loops settle it by the same sum that gives the ends.
    const elapsedMs = Math.max(0, nowMs - this.#startMs);
    const slope = this.#firstMs - this.#growthMs / 2;
    const root = (2 * elapsedMs) / (slope + Math.sqrt(slope * slope + 2 * this.#growthMs * elapsedMs));
    let steps = Math.min(last, Math.floor(root));
    while (steps > 0 && this.#endOf(steps) >= nowMs) steps--;
    while (steps < last && this.#endOf(steps + 1) < nowMs) steps++;
    return steps;
  }

  /** Makes the step number `steps`, from 1, the last one. */
  cutTo(steps: number): void {
    this.#steps = Math.min(this.#steps, steps);
    this.#endMs = this.#endOf(this.#steps);
  }

  #endOf(step: number): number {
    return this.#startMs + step * this.#firstMs + (this.#growthMs * step * (step - 1)) / 2;
  }
}
