import { askForUsage } from "./body-edit.ts";
import type { BufferShare } from "./buffer-budget.ts";

/** A body as it was received, and what is known to be done with it. */
export interface OutboundParts {
  readonly sent: Buffer;
  /** `sent` without its coding. */
  readonly decoded: Buffer;
  /** `decoded` with another model's name; undefined: the name stays. */
  readonly renamed: Buffer | undefined;
  /** Whether the usage option may be put into it. */
  readonly mayAskUsage: boolean;
}

/**
 * A request body on its way to endpoints: the client's bytes, but for what had to be changed. Keeps what may yet be
 * sent, all of it counted in the request's share, until an answer has reached the client.
 */
export class OutboundBody {
  readonly #share: BufferShare;
  /** Whether the client's content-encoding describes `#plain`. */
  readonly #isAsSent: boolean;
  readonly #isCounted: boolean;
  /** Undefined: it is released. */
  #plain: Buffer | undefined;
  /** What the option is put into; undefined: it never will be, or was. */
  #readable: Buffer | undefined;
  #asking: Buffer | undefined;

  constructor({ sent, decoded, renamed, mayAskUsage }: OutboundParts, share: BufferShare) {
    this.#share = share;
    // A compressed body goes out as it came unless something in it had to change.
    this.#plain = renamed ?? sent;
    this.#isAsSent = renamed === undefined;
    this.#readable = mayAskUsage ? (renamed ?? decoded) : undefined;
    // What else was received for this is not needed any more.
    this.#isCounted = share.resize(this.keptBytes);
  }

  /** False: there is no room for what had to be changed in it. */
  get isCounted(): boolean {
    return this.#isCounted;
  }

  /** What it takes in memory. */
  get keptBytes(): number {
    // Before anything was put in, what is sent and what can be read are mostly the same bytes.
    const readable = this.#readable === this.#plain ? undefined : this.#readable;
    return lengthOf(this.#plain) + lengthOf(readable) + lengthOf(this.#asking);
  }

  /**
   * Puts the usage option in, unless that was done for another attempt. False: the client did not leave it open, or
   * there is no room for a second copy; a count of tokens is not worth refusing a request.
   */
  askForUsage(): boolean {
    if (this.#asking !== undefined) return true;
    if (this.#readable === undefined) return false;
    if (!this.#share.grow(this.#readable.length + MOST_ADDED_BYTES)) return false;
    this.#asking = askForUsage(this.#readable);
    this.#readable = undefined;
    return this.#share.resize(this.keptBytes);
  }

  /** @param asksForUsage Only after `askForUsage` said that it can be. @throws once it is released. */
  bytes(asksForUsage: boolean): Buffer {
    const bytes = asksForUsage ? this.#asking : this.#plain;
    if (bytes === undefined) throw new Error("a body was wanted that is not kept");
    return bytes;
  }

  /** Whether the client's content-encoding still describes the bytes. */
  keepsContentEncoding(asksForUsage: boolean): boolean {
    return this.#isAsSent && !asksForUsage;
  }

  /** It will not be sent again: answers last for hours, and nothing of the request is kept for them. */
  release(): void {
    this.#plain = undefined;
    this.#readable = undefined;
    this.#asking = undefined;
    this.#share.release();
  }
}

/** What the option adds to a body at most, with room to spare: its two names, its value and what stands between. */
const MOST_ADDED_BYTES = 64;

function lengthOf(bytes: Buffer | undefined): number {
  return bytes?.length ?? 0;
}
