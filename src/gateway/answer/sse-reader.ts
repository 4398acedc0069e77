import { GrowingBuffer } from "./growing-buffer.ts";

/** One event of an event stream: a view of the reader's buffers, valid only during the call that hands it out. */
export interface SseEvent {
  /** Its data lies in `bytes` from `start` to `end`. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** Empty: the stream gave no name. */
  readonly name: string;
  /** Where the event lies in the whole stream, from its first field to past its blank line. */
  readonly streamFrom: number;
  readonly streamTo: number;
  /** Its data passed the bound and was let go: the range is empty. */
  readonly isOversized: boolean;
}

/** Most bytes kept of one event. The largest that matter, final events that repeat a whole answer, are some 100 KB. */
export const MAX_EVENT_BYTES = 1_048_576;

/**
 * Splits a byte stream into events as the WHATWG standard says (HTML, 9.2.6): lines end in LF, CR or CRLF, data lines
 * join with LF, comments and unknown fields are passed over. Every byte is looked at once and only events that
 * reach over chunks are copied. Chunks must not be written to after they were pushed.
 */
export class SseReader {
  readonly #onEvent: (event: SseEvent) => void;
  readonly #event: { -readonly [Field in keyof SseEvent]: SseEvent[Field] };
  /** Where in the stream the next chunk begins. */
  #offset = 0;
  #hasFields = false;
  #hasData = false;
  /** Data of more than one line; empty while one line holds it all. */
  readonly #joined: GrowingBuffer = new GrowingBuffer();
  /** The line that the chunks so far left open. */
  readonly #line: GrowingBuffer = new GrowingBuffer();
  #isLineOversized = false;
  #isFirstLine = true;
  /** The last chunk ended in CR: a LF that begins the next one belongs to it. */
  #mayStartWithLf = false;

  constructor(onEvent: (event: SseEvent) => void) {
    this.#onEvent = onEvent;
    this.#event = { bytes: NO_BYTES, start: 0, end: 0, name: "", streamFrom: 0, streamTo: 0, isOversized: false };
  }

  /** How many bytes were pushed. */
  get streamBytes(): number {
    return this.#offset;
  }

  /** Where in the stream the event begins that no blank line has ended yet; the stream's length if there is none. */
  get openEventFrom(): number {
    return this.#event.streamFrom;
  }

  push(chunk: Buffer): void {
    let at = this.#mayStartWithLf && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#mayStartWithLf = false;
    if (at === 1 && !this.#hasFields) this.#event.streamFrom = this.#offset + 1;
    const hasCr = chunk.indexOf(CR, at) !== -1;
    while (at < chunk.length) {
      const end = endOfLine(chunk, at, hasCr);
      if (end === -1) {
        this.#keepOpenLine(chunk, at);
        break;
      }
      let next = end + 1;
      if (chunk[end] === CR) {
        if (chunk[next] === LF) next++;
        else if (next === chunk.length) this.#mayStartWithLf = true;
      }
      this.#endLine(chunk, at, end, this.#offset + next);
      at = next;
    }
    this.#offset += chunk.length;
  }

  /** The stream ended: hands out an event that no blank line ended. */
  end(): void {
    if (this.#line.length > 0 || this.#isLineOversized) this.#endLine(NO_BYTES, 0, 0, this.#offset);
    this.#endEvent(this.#offset);
  }

  #keepOpenLine(chunk: Buffer, from: number): void {
    if (this.#isLineOversized) return;
    if (this.#line.length + chunk.length - from > MAX_EVENT_BYTES) {
      this.#line.clear();
      this.#isLineOversized = true;
    } else {
      this.#line.append(chunk, from, chunk.length);
    }
  }

  #endLine(chunk: Buffer, start: number, end: number, streamTo: number): void {
    if (this.#isLineOversized) {
      this.#isLineOversized = false;
      this.#dropData();
    } else if (this.#line.length > 0) {
      this.#line.append(chunk, start, end);
      const line = this.#line.take();
      this.#readLine(line, 0, line.length, streamTo);
    } else {
      this.#readLine(chunk, start, end, streamTo);
    }
  }

  #readLine(bytes: Buffer, from: number, end: number, streamTo: number): void {
    let start = from;
    if (this.#isFirstLine) {
      this.#isFirstLine = false;
      if (bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf) start += 3;
    }
    if (start === end) this.#endEvent(streamTo);
    else if (bytes[start] !== COLON) this.#readField(bytes, start, end);
    else if (!this.#hasFields) this.#event.streamFrom = streamTo;
  }

  #readField(bytes: Buffer, start: number, end: number): void {
    this.#hasFields = true;
    const data = startOfValue(DATA, bytes, start, end);
    if (data !== -1) {
      this.#addData(bytes, data, end);
      return;
    }
    const name = startOfValue(EVENT, bytes, start, end);
    if (name !== -1) this.#event.name = bytes.toString("latin1", name, end);
  }

  #addData(bytes: Buffer, start: number, end: number): void {
    const event = this.#event;
    if (event.isOversized) return;
    if (!this.#hasData) {
      this.#hasData = true;
      event.bytes = bytes;
      event.start = start;
      event.end = end;
      return;
    }
    if (this.#joined.length === 0) this.#joined.append(event.bytes, event.start, event.end);
    if (this.#joined.length + end - start >= MAX_EVENT_BYTES) {
      this.#dropData();
      return;
    }
    this.#joined.appendByte(LF);
    this.#joined.append(bytes, start, end);
  }

  #dropData(): void {
    this.#hasFields = true;
    this.#hasData = true;
    this.#joined.clear();
    this.#event.isOversized = true;
    this.#event.bytes = NO_BYTES;
    this.#event.start = 0;
    this.#event.end = 0;
  }

  #endEvent(streamTo: number): void {
    const event = this.#event;
    if (this.#hasData) {
      if (this.#joined.length > 0) {
        event.bytes = this.#joined.take();
        event.start = 0;
        event.end = event.bytes.length;
      }
      event.streamTo = streamTo;
      this.#onEvent(event);
      event.bytes = NO_BYTES;
      event.isOversized = false;
      this.#hasData = false;
    }
    event.name = "";
    event.streamFrom = streamTo;
    this.#hasFields = false;
  }
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const DATA = Buffer.from("data");
const EVENT = Buffer.from("event");
const NO_BYTES = Buffer.alloc(0);

/** Index of the byte that ends the line, -1: the chunk does not hold it. */
function endOfLine(chunk: Buffer, from: number, hasCr: boolean): number {
  // The blank line after an event, which is every second line there is.
  if (chunk[from] === LF) return from;
  if (!hasCr) return chunk.indexOf(LF, from);
  for (let i = from; i < chunk.length; i++) {
    const byte = chunk[i];
    if (byte === LF || byte === CR) return i;
  }
  return -1;
}

/** Where the value of the line's field begins, if `field` is its name; -1 otherwise. */
function startOfValue(field: Buffer, bytes: Buffer, start: number, end: number): number {
  const at = start + field.length;
  if (at > end) return -1;
  for (let i = 0; i < field.length; i++) if (bytes[start + i] !== field[i]) return -1;
  if (at === end) return at;
  if (bytes[at] !== COLON) return -1;
  return at + 1 < end && bytes[at + 1] === SPACE ? at + 2 : at + 1;
}
