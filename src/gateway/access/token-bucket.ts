/** Whether an amount was taken; if not, when it could be. */
export type Taking = { readonly isTaken: true } | { readonly isTaken: false; readonly waitMs: number };

/**
 * An allowance that fills up evenly to a minute's worth. It may go below zero: by one request larger than all of it,
 * which would otherwise never be served, and by what turned out to have been used beyond what was taken.
 */
export class TokenBucket {
  /** What a minute gives, and the most that is saved. */
  readonly perMinute: number;
  #level: number;
  #filledAtMs: number;

  /** @param nowMs Monotonic, here as everywhere. */
  constructor(perMinute: number, nowMs: number) {
    this.perMinute = perMinute;
    this.#level = perMinute;
    this.#filledAtMs = nowMs;
  }

  take(amount: number, nowMs: number): Taking {
    this.#fill(nowMs);
    const missing = Math.min(amount, this.perMinute) - this.#level;
    if (missing > 0) return { isTaken: false, waitMs: this.#msFor(missing) };
    this.#level -= amount;
    return TAKEN;
  }

  /** Puts back what was taken and not used; a negative amount is what was used beyond it. */
  putBack(amount: number, nowMs: number): void {
    this.#fill(nowMs);
    this.#level = Math.min(this.perMinute, this.#level + amount);
  }

  /** What may be taken now. */
  remaining(nowMs: number): number {
    this.#fill(nowMs);
    return Math.max(0, this.#level);
  }

  /** What it takes to be full. */
  missing(nowMs: number): number {
    this.#fill(nowMs);
    return this.perMinute - this.#level;
  }

  /** Until it is full. */
  resetMs(nowMs: number): number {
    return this.#msFor(this.missing(nowMs));
  }

  /** The same allowance at another rate, with the same share of it left. */
  resized(perMinute: number, nowMs: number): TokenBucket {
    this.#fill(nowMs);
    const resized = new TokenBucket(perMinute, nowMs);
    resized.#level = (this.#level / this.perMinute) * perMinute;
    return resized;
  }

  #fill(nowMs: number): void {
    const gained = ((nowMs - this.#filledAtMs) / MINUTE_MS) * this.perMinute;
    this.#level = Math.min(this.perMinute, this.#level + gained);
    this.#filledAtMs = nowMs;
  }

  #msFor(amount: number): number {
    return (amount / this.perMinute) * MINUTE_MS;
  }
}

/** What is not limited can always be taken. */
export const TAKEN: Taking = { isTaken: true };
const MINUTE_MS = 60_000;
