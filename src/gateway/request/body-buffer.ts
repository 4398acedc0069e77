import type { BufferShare } from "./buffer-budget.ts";

/** What became of bytes that were to be kept. */
export type Kept = "kept" | "too_large" | "too_much_buffered";

/**
 * A body as it arrives, in one buffer. What it takes of the budget is what it really allocates: pieces of a byte each,
 * kept apart, would take a hundred times what they hold.
 */
export class BodyBuffer {
  readonly #limitBytes: number;
  /** The most that can come: what the client declared, or the limit. */
  readonly #expectedBytes: number;
  readonly #share: BufferShare;
  #buffer: Buffer = EMPTY;
  #length = 0;

  /** @param declaredBytes Undefined: its length is not known. */
  constructor(limitBytes: number, declaredBytes: number | undefined, share: BufferShare) {
    this.#limitBytes = limitBytes;
    this.#expectedBytes = Math.min(declaredBytes ?? limitBytes, limitBytes);
    this.#share = share;
  }

  /** Bytes received so far. */
  get length(): number {
    return this.#length;
  }

  append(chunk: Buffer): Kept {
    const needed = this.#length + chunk.length;
    if (needed > this.#limitBytes) return "too_large";
    // Most bodies come in one piece, which is kept as it is.
    if (this.#length === 0 && needed === this.#expectedBytes) return this.#adopt(chunk);
    if (needed > this.#buffer.length && !this.#reserve(needed)) return "too_much_buffered";
    chunk.copy(this.#buffer, this.#length);
    this.#length = needed;
    return "kept";
  }

  /** Hands over the body. What was reserved beyond it is given back. */
  take(): Buffer {
    const spare = this.#buffer.length - this.#length;
    // A view would keep all of the buffer alive.
    const body = spare === 0 ? this.#buffer : Buffer.from(this.#buffer.subarray(0, this.#length));
    this.#share.shrink(spare);
    this.#forget();
    return body;
  }

  /** Gives up what was received. */
  discard(): void {
    this.#share.shrink(this.#buffer.length);
    this.#forget();
  }

  #forget(): void {
    this.#buffer = EMPTY;
    this.#length = 0;
  }

  #adopt(chunk: Buffer): Kept {
    if (!this.#share.grow(chunk.length)) return "too_much_buffered";
    this.#buffer = chunk;
    this.#length = chunk.length;
    return "kept";
  }

  /** Doubles the room, so that copying stays linear, up to what can come at all. */
  #reserve(needed: number): boolean {
    const capacity = Math.max(needed, Math.min(this.#expectedBytes, Math.max(MIN_BYTES, this.#buffer.length * 2)));
    if (!this.#share.grow(capacity - this.#buffer.length)) return false;
    const grown = Buffer.allocUnsafeSlow(capacity);
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
    return true;
  }
}

const EMPTY = Buffer.alloc(0);
/** What most prompts fit in. */
const MIN_BYTES = 16 * 1024;
