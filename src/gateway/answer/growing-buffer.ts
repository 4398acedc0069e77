/**
 * Bytes that arrive in pieces, kept in one buffer that doubles: appending is linear however small the pieces are. A whole
 * chunk that comes first is not copied until there is more, so chunks must not be written to afterwards.
 */
export class GrowingBuffer {
  #bytes: Buffer = EMPTY;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(source: Buffer, start: number, end: number): void {
    if (this.#length === 0 && end - start === source.length) {
      this.#bytes = source;
      this.#length = source.length;
      return;
    }
    this.#reserve(end - start);
    source.copy(this.#bytes, this.#length, start, end);
    this.#length += end - start;
  }

  appendByte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = byte;
  }

  /** Whether a word of ASCII letters stands in it. */
  includes(word: string): boolean {
    return this.#bytes.subarray(0, this.#length).includes(word, 0, "latin1");
  }

  /** Hands the bytes over and starts anew: what was taken is never written to again. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.clear();
    return taken;
  }

  clear(): void {
    this.#bytes = EMPTY;
    this.#length = 0;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2, MIN_BYTES));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

const EMPTY = Buffer.alloc(0);
/** One event of a token stream is a few hundred bytes. */
const MIN_BYTES = 512;
