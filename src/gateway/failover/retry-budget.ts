/** How much may be withdrawn from a budget; read at each withdrawal, so that a new configuration holds at once. */
export interface BudgetLimits {
  /** Withdrawals as a share of deposits. */
  readonly ratio: number;
  /** Withdrawals that are allowed however few deposits there were. */
  readonly minPerSecond: number;
}

/**
 * Bounds what the balancer sends twice: at any moment the withdrawals of the last window are at most a share of its
 * deposits, plus a floor. Retries then cost a fleet that is overloaded that share of extra traffic and no more, however
 * often each request would be allowed to be tried again. The window slides in tenths of itself.
 */
export class RetryBudget {
  readonly #windowMs: number;
  readonly #deposits: SlidingCount;
  readonly #withdrawals: SlidingCount;

  constructor(windowMs: number = WINDOW_MS) {
    this.#windowMs = windowMs;
    this.#deposits = new SlidingCount(windowMs);
    this.#withdrawals = new SlidingCount(windowMs);
  }

  /** A request is sent for the first time. */
  deposit(nowMs: number): void {
    this.#deposits.add(nowMs);
  }

  /** Whether one more may be withdrawn. */
  covers({ ratio, minPerSecond }: BudgetLimits, nowMs: number): boolean {
    const allowed = this.#deposits.sum(nowMs) * ratio + (minPerSecond * this.#windowMs) / 1000;
    // Sums of decimal fractions fall short of whole numbers by less than this.
    return this.#withdrawals.sum(nowMs) + 1 <= allowed + 1e-9;
  }

  /** Counts one, covered or not: what must be sent whatever it costs leaves less for what need not be. */
  withdraw(nowMs: number): void {
    this.#withdrawals.add(nowMs);
  }
}

/** Long enough for a share of a few requests a second to mean something, short enough to forget a burst. */
const WINDOW_MS = 10_000;
const BUCKETS = 10;

/** How many there were in a window that ends now, counted in buckets that are used again. */
class SlidingCount {
  readonly #bucketMs: number;
  readonly #counts: number[] = new Array(BUCKETS).fill(0);
  /** Number of the newest bucket since the start of time. */
  #newest = 0;
  #sum = 0;

  constructor(windowMs: number) {
    this.#bucketMs = windowMs / BUCKETS;
  }

  add(nowMs: number): void {
    this.#advance(nowMs);
    const at = this.#newest % BUCKETS;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum++;
  }

  sum(nowMs: number): number {
    this.#advance(nowMs);
    return this.#sum;
  }

  #advance(nowMs: number): void {
    const newest = Math.floor(nowMs / this.#bucketMs);
    const passed = Math.min(newest - this.#newest, BUCKETS);
    for (let i = 1; i <= passed; i++) {
      const at = (this.#newest + i) % BUCKETS;
      this.#sum -= this.#counts[at] ?? 0;
      this.#counts[at] = 0;
    }
    if (newest > this.#newest) this.#newest = newest;
  }
}
