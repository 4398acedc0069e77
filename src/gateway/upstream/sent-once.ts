import { Readable } from "node:stream";

/**
 * A body that nobody keeps once it is sent. undici keeps a body that it was given as bytes until the answer is over,
 * which may be hours.
 */
export class SentOnce extends Readable {
  #body: Buffer | undefined;

  constructor(body: Buffer) {
    super();
    this.#body = body;
  }

  /** The body itself where that is less than the connections of client and endpoint take: bytes are sent faster. */
  static orKept(body: Buffer): Buffer | SentOnce {
    return body.length <= MAX_KEPT_BYTES ? body : new SentOnce(body);
  }

  override _read(): void {
    const body = this.#body;
    this.#body = undefined;
    this.push(body);
    this.push(null);
  }
}

const MAX_KEPT_BYTES = 16 * 1024;
