/**
 * What the bodies of all requests take in memory, and the most they may. Whoever buffers takes a share first and gives
 * it back when its bytes are gone.
 */
export class BufferBudget {
  readonly #limitBytes: () => number;
  #usedBytes = 0;

  /** @param limitBytes Read each time: the configuration may change. */
  constructor(limitBytes: () => number) {
    this.#limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  open(): BufferShare {
    return new BufferShare(this);
  }

  /** False: it would be too much, and nothing was taken. */
  take(bytes: number): boolean {
    if (this.#usedBytes + bytes > this.#limitBytes()) return false;
    this.#usedBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}

/** One request's part of the budget. */
export class BufferShare {
  readonly #budget: BufferBudget;
  #bytes = 0;
  #isReleased = false;

  constructor(budget: BufferBudget) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** False: there is no room for that, or the request is over; nothing was taken. */
  grow(bytes: number): boolean {
    if (this.#isReleased || !this.#budget.take(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Makes it `bytes`. False: there is no room for that, and it stays as it is. */
  resize(bytes: number): boolean {
    if (bytes > this.#bytes) return this.grow(bytes - this.#bytes);
    this.shrink(this.#bytes - bytes);
    return true;
  }

  shrink(bytes: number): void {
    const given = Math.min(bytes, this.#bytes);
    this.#bytes -= given;
    this.#budget.giveBack(given);
  }

  /** Gives everything back, for good. May be called twice. */
  release(): void {
    this.#isReleased = true;
    this.shrink(this.#bytes);
  }
}
