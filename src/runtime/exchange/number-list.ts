/** Writes numbers one after the other. */
export class NumberWriter {
  #numbers = new Float64Array(1024);
  #length = 0;

  /** Begins anew, where there is room already. */
  clear(): void {
    this.#length = 0;
  }

  push(value: number): void {
    if (this.#length === this.#numbers.length) {
      const larger = new Float64Array(2 * this.#length);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    this.#numbers[this.#length++] = value;
  }

  /** A view of what was written: it holds until the next `push` or `clear`. */
  get numbers(): Float64Array {
    return this.#numbers.subarray(0, this.#length);
  }
}

/** Reads them back, in that order. */
export class NumberReader {
  readonly #numbers: Float64Array;
  #at = 0;

  constructor(numbers: Float64Array) {
    this.#numbers = numbers;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#numbers.length;
  }

  /** @throws RangeError when there is no more. */
  next(): number {
    const value = this.#numbers[this.#at++];
    if (value === undefined) throw new RangeError("fewer numbers than were told of");
    return value;
  }

  /** The next `count`. @throws RangeError when there are fewer. */
  take(count: number): number[] {
    if (!(count >= 0 && count <= this.#numbers.length - this.#at))
      throw new RangeError("fewer numbers than were told of");
    const values: number[] = [];
    for (let i = 0; i < count; i++) values.push(this.next());
    return values;
  }
}
