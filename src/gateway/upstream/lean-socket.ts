import { type OnReadOpts, Socket, type SocketConstructorOpts } from "node:net";

/**
 * A TCP connection for undici, which takes what has come by `read` whenever there is a `readable`. Node by default
 * allocates 64 KiB for each read and passes the bytes through the buffer of a stream; here all connections read into
 * one buffer, and what came is handed on as a copy of its own size. Saves 3 us of about 20 per streamed event.
 */
export class LeanSocket extends Socket {
  /** What has just come, while its reader is told. */
  #chunk: Buffer | undefined;

  constructor() {
    const inbox = new Inbox();
    const options: SocketConstructorOpts & { readonly onread: OnReadOpts } = { onread: inbox };
    super(options);
    inbox.reader = this;
  }

  override read(bytes?: number): Buffer | null {
    const chunk = this.#chunk;
    if (chunk === undefined || bytes === 0) return super.read(bytes) as Buffer | null;
    this.#chunk = undefined;
    return chunk;
  }

  /** Takes what has come. @returns whether to go on reading. */
  receive(chunk: Buffer): boolean {
    // Behind what was put back, if there is something.
    if (this.readableLength === 0) {
      this.#chunk = chunk;
      this.emit("readable");
      if (this.#chunk === undefined) return this.readableLength === 0;
      this.#chunk = undefined;
    }
    // Its reader waits: from here on it is a stream like any other.
    this.push(chunk);
    return false;
  }
}

/** Where Node puts what it read. */
class Inbox implements OnReadOpts {
  readonly buffer = READ_INTO;
  /** Undefined: it is being made, and nothing can come. */
  reader: LeanSocket | undefined;

  readonly callback = (bytes: number, buffer: Uint8Array): boolean =>
    this.reader?.receive(Buffer.from(buffer.subarray(0, bytes))) ?? false;
}

/** Two reads cannot overlap: what came is copied before the next one begins. */
const READ_INTO: Buffer = Buffer.allocUnsafeSlow(64 * 1024);
