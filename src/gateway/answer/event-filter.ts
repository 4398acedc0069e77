/** Longest event held back while it is incomplete. A usage event has some hundred bytes; a longer one is let pass. */
const MAX_HELD_BYTES = 65_536;

const LF = 0x0a;
const CR = 0x0d;

/**
 * Removes whole events from a byte stream. It holds back the event at the stream's end until that is complete and so
 * can be judged; everything else passes at once and untouched. All positions count from the start of the stream.
 */
export class EventFilter {
  /** Pushed and not yet passed on; they end where the next chunk begins. */
  #held: Buffer[] = [];
  #passedTo = 0;
  #streamTo = 0;
  /** Ranges to leave out of what is still here, in order. */
  #removed: { from: number; to: number }[] = [];
  /** The last thing removed ended in CR: a LF that follows is the rest of its line end. */
  #mayOweLf = false;

  /** Where the bytes end that were passed on or removed. */
  get passedTo(): number {
    return this.#passedTo;
  }

  /** Has no effect on an event whose beginning has passed already. */
  remove(from: number, to: number): void {
    if (from >= this.#passedTo) this.#removed.push({ from, to });
  }

  /**
   * Call after the events in `chunk` were judged.
   * @param openEventFrom Where the incomplete event at the end begins.
   * @returns what may pass now.
   */
  pass(chunk: Buffer, openEventFrom: number): Buffer {
    const chunkFrom = this.#streamTo;
    this.#streamTo += chunk.length;
    if (this.#mayOweLf && chunk[0] === LF) this.#removed.unshift({ from: chunkFrom, to: chunkFrom + 1 });
    if (chunk.length > 0) this.#mayOweLf = false;
    const passTo = this.#streamTo - openEventFrom > MAX_HELD_BYTES ? this.#streamTo : openEventFrom;
    if (this.#held.length === 0 && this.#removed.length === 0 && passTo === this.#streamTo) {
      this.#passedTo = passTo;
      return chunk;
    }
    this.#held.push(chunk);
    if (passTo <= this.#passedTo) return NO_BYTES;
    return this.#passUpTo(passTo, chunk);
  }

  /** Passes on all that is held: the stream has ended. */
  flush(): Buffer {
    return this.#passUpTo(this.#streamTo, NO_BYTES);
  }

  #passUpTo(passTo: number, lastChunk: Buffer): Buffer {
    const bytes = this.#held.length === 1 ? (this.#held[0] ?? NO_BYTES) : Buffer.concat(this.#held);
    const base = this.#streamTo - bytes.length;
    const kept: Buffer[] = [];
    let from = this.#passedTo;
    for (const range of this.#removed) {
      kept.push(bytes.subarray(from - base, range.from - base));
      from = range.to;
    }
    kept.push(bytes.subarray(from - base, passTo - base));
    this.#mayOweLf = this.#removed.at(-1)?.to === this.#streamTo && lastChunk.at(-1) === CR;
    this.#removed = [];
    this.#held = passTo === this.#streamTo ? [] : [bytes.subarray(passTo - base)];
    this.#passedTo = passTo;
    const nonEmpty = kept.filter((piece) => piece.length > 0);
    return nonEmpty.length === 1 ? (nonEmpty[0] ?? NO_BYTES) : Buffer.concat(nonEmpty);
  }
}

const NO_BYTES = Buffer.alloc(0);
