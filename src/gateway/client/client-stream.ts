import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** The head of an endpoint's answer. */
export interface AnswerHead {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly isStream: boolean;
  /** As the endpoint declared it; undefined: it did not, or it does not hold any more. */
  readonly bodyBytes: number | undefined;
}

/**
 * The client's side of an answer. Knows whether anything was sent, whether the client keeps up, and
 * how to end an answer that went wrong: never in a way that looks whole.
 */
export class ClientStream {
  readonly #response: ServerResponse;
  readonly #isDraining: () => boolean;
  #head: AnswerHead | undefined;
  #writes = 0;
  /** It was opened before any endpoint had answered, and none has since. */
  #awaitsAnswer = false;
  #wasOpenedEarly = false;
  /** The socket to write framed chunks to; undefined: Node frames the body. */
  #chunkSocket: Socket | undefined;

  /** @param isDraining Whether connections are to be closed behind their answers. */
  constructor(response: ServerResponse, isDraining: () => boolean) {
    this.#response = response;
    this.#isDraining = isDraining;
  }

  /** From here on nothing can be taken back: the answer is this endpoint's. */
  get isCommitted(): boolean {
    return this.#response.headersSent;
  }

  /** How often something was written; for telling a silence. */
  get writes(): number {
    return this.#writes;
  }

  /** It was opened early, and no endpoint's answer has begun: what is written now stands before all events. */
  get awaitsAnswer(): boolean {
    return this.#awaitsAnswer;
  }

  /** Its status was sent before an endpoint had answered: an answer that is no stream cannot be told any more. */
  get wasOpenedEarly(): boolean {
    return this.#wasOpenedEarly;
  }

  /** Sends the head of a stream before there is an answer. */
  openEarly(headers: readonly string[]): void {
    this.#wasOpenedEarly = true;
    this.#awaitsAnswer = true;
    this.#head = { status: 200, headers: [...headers], isStream: true, bodyBytes: undefined };
    this.#openStream();
  }

  /** Writes what every client of a stream passes over; only between two events. */
  comment(): void {
    this.write(COMMENT);
  }

  /**
   * Announces an endpoint's answer. A stream's head goes out at once, since its first event may be long in coming;
   * any other's goes out with its body.
   */
  begin(head: AnswerHead): void {
    this.#awaitsAnswer = false;
    if (this.#wasOpenedEarly) return;
    this.#head = head;
    if (head.isStream) this.#openStream();
  }

  #openStream(): void {
    this.#commit();
    const { socket, chunkedEncoding } = this.#response;
    // Mostly the first event is already here: head and event go out as one.
    socket?.cork();
    process.nextTick(() => socket?.uncork());
    this.#response.flushHeaders();
    // HTTP/1.0 has no chunks.
    if (chunkedEncoding && socket !== null) this.#chunkSocket = socket;
  }

  /** The client has not taken what it was sent: write no more before `onDrain` tells that it has caught up. */
  get isBehind(): boolean {
    return (this.#chunkSocket ?? this.#response).writableNeedDrain;
  }

  write(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#writes++;
    if (this.#head !== undefined) {
      const { bodyBytes } = this.#head;
      this.#commit();
      if (bodyBytes === bytes.length && bytes.length <= MAX_FRAMED_BYTES) {
        // The whole body. As text of the same bytes Node sends it in one piece with its head; as bytes, in two.
        this.#response.end(bytes.toString("latin1"), "latin1");
        return;
      }
    }
    // Node would write size, bytes and line end as three pieces; one piece costs a fifth less CPU an event.
    if (this.#chunkSocket === undefined || bytes.length > MAX_FRAMED_BYTES) this.#response.write(bytes);
    else this.#chunkSocket.write(chunkOf(bytes));
  }

  onDrain(resume: () => void): void {
    (this.#chunkSocket ?? this.#response).once("drain", resume);
  }

  end(): void {
    if (this.#head !== undefined) this.#commit();
    if (!this.#response.writableEnded) this.#response.end();
  }

  /** The answer has ended, and what is left of it is the client's to take. One that takes nothing for so long is dropped. */
  dropIfStalled(afterMs: number): void {
    const { socket } = this.#response;
    if (socket === null || socket.writableLength === 0) return;
    let leftBytes = socket.writableLength;
    const timer = setInterval(() => {
      if (socket.writableLength === leftBytes) this.#response.destroy();
      leftBytes = socket.writableLength;
    }, afterMs).unref();
    this.#response.once("close", () => clearInterval(timer));
  }

  /** A whole answer of the balancer's own. */
  answer(status: number, headers: string[], body: Buffer): void {
    const { req } = this.#response;
    this.#head = { status, headers, isStream: false, bodyBytes: undefined };
    this.#commit();
    // A client that was not given leave to send its body sends none.
    if (req.complete || req.headers.expect !== undefined) this.#response.end(body);
    else this.#endAfterRest(req, body);
    // What is left of the request's body is read away, so that the connection can carry the next request.
    req.resume();
  }

  /** Tells a client that asked for leave to send its body that it may. */
  invite(): void {
    this.#response.writeContinue();
  }

  /**
   * Writes what every client passes over: an interim answer before the head, a comment inside a stream.
   * @param mayInsert Whether the stream is between two events.
   */
  knock(mayInsert: boolean): void {
    if (this.isCommitted) {
      if (mayInsert) this.comment();
    } else if (this.#isHttp10) this.#response.destroy();
    else this.#response.writeContinue();
  }

  /** Cuts the connection inside the body, after `lastWords` if there are any. */
  break(lastWords?: Buffer): void {
    if (lastWords === undefined || this.#response.destroyed) {
      this.#cut();
      return;
    }
    this.#response.write(lastWords, () => this.#cut());
    setTimeout(() => this.#cut(), LAST_WORDS_MS).unref();
  }

  get #isHttp10(): boolean {
    return this.#response.req.httpVersionMinor === 0;
  }

  #commit(): void {
    const { status, headers } = this.#head as AnswerHead;
    this.#head = undefined;
    if (this.#isDraining()) this.#response.shouldKeepAlive = false;
    this.#response.writeHead(status, headers);
  }

  /**
   * Closing a connection that has unread bytes resets it, and a reset may overtake the answer. So the answer is sent
   * in full, and ended when the client has stopped sending or has had time to.
   */
  #endAfterRest(request: IncomingMessage, body: Buffer): void {
    this.#response.write(body);
    const end = (): void => {
      clearTimeout(timer);
      this.#response.end();
    };
    const timer = setTimeout(end, LINGER_MS).unref();
    request.once("close", end);
  }

  #cut(): void {
    const { socket } = this.#response;
    // TLS tells an end that was meant from one that was not by itself.
    if (!this.#isHttp10 || socket === null || socket instanceof TLSSocket) {
      this.#response.destroy();
      return;
    }
    // A body without chunks or length ends with its connection: only a reset tells that this is not its end. One that
    // comes together with the last bytes is read as an end by some.
    setTimeout(() => socket.resetAndDestroy(), RESET_AFTER_MS);
  }
}

const COMMENT = Buffer.from(":\n\n");
/** A client that reads takes an event within this, and one that does not cannot hold its connection. */
const LAST_WORDS_MS = 1_000;
const LINGER_MS = 1_000;
const RESET_AFTER_MS = 50;

/** Above this, copying a chunk into its frame costs more than writing it in pieces. */
const MAX_FRAMED_BYTES = 16 * 1024;

/** A chunk as RFC 9112, 7.1 frames it. */
function chunkOf(bytes: Buffer): Buffer {
  const size = bytes.length.toString(16);
  const chunk = Buffer.allocUnsafe(size.length + bytes.length + 4);
  chunk.write(size, "latin1");
  let at = size.length;
  chunk[at++] = CR;
  chunk[at++] = LF;
  at += bytes.copy(chunk, at);
  chunk[at++] = CR;
  chunk[at] = LF;
  return chunk;
}

const CR = 0x0d;
const LF = 0x0a;
