import type { ReadDialect } from "../routes.ts";
import { EventFilter } from "./event-filter.ts";
import { type SseEvent, SseReader } from "./sse-reader.ts";
import type { EventReader, StreamError, StreamState } from "./stream-state.ts";
import { readChatEvent } from "./streams/chat.ts";
import { createMessagesEventReader } from "./streams/messages.ts";
import { readResponsesEvent } from "./streams/responses.ts";
import type { Usage } from "./usage.ts";

export type { StreamError } from "./stream-state.ts";

/** What one chunk of a stream brought. */
export interface ChunkReport {
  /** Bytes for the client: the chunk itself, unless an event was held back or removed. May be empty. */
  readonly forward: Buffer;
  /** Events that carry generated tokens. */
  readonly tokenEvents: number;
  /** Events with data of any kind; comments are none, so this is what counts as progress. */
  readonly dataEvents: number;
}

/** Reads a streamed answer as it passes. */
export interface StreamMeter {
  /** Last counts reported so far; undefined: none yet. */
  readonly usage: Usage | undefined;
  /** First error event; undefined: none. */
  readonly error: StreamError | undefined;
  /** The first event with data was that error. */
  readonly beginsWithError: boolean;
  /** The dialect's end mark came: `[DONE]`, `message_stop`, `response.completed`. */
  readonly isDone: boolean;
  /** The engine said why generation stopped: without this and without the end mark, a stream that ends is broken. */
  readonly hasFinishReason: boolean;
  /** False: the client holds the first bytes of an event, so nothing may be put in now without ending it first. */
  readonly isBetweenEvents: boolean;
  push(chunk: Buffer): ChunkReport;
  /** The upstream body ended well: reads an event that no blank line ended and hands out what was held back. */
  end(): ChunkReport;
}

/** How a stream is metered. */
export interface StreamMeterOptions {
  /** The balancer asked for usage and the client did not: the event that holds usage and nothing else is removed. */
  readonly dropUsageEvent: boolean;
}

export function createStreamMeter(dialect: ReadDialect, { dropUsageEvent }: StreamMeterOptions): StreamMeter {
  return new EventMeter(createEventReader(dialect), dropUsageEvent ? new EventFilter() : undefined);
}

function createEventReader(dialect: ReadDialect): EventReader {
  if (dialect === "messages") return createMessagesEventReader();
  return dialect === "responses" ? readResponsesEvent : readChatEvent;
}

class EventMeter implements StreamMeter {
  readonly #reader: SseReader = new SseReader((event) => this.#count(event));
  readonly #readEvent: EventReader;
  /** Undefined: all bytes pass. */
  readonly #filter: EventFilter | undefined;
  readonly #state: StreamState = { usage: undefined, error: undefined, isDone: false, hasFinishReason: false };
  #tokenEvents = 0;
  #dataEvents = 0;
  /** Undefined: no event yet. */
  #beginsWithError: boolean | undefined;

  constructor(readEvent: EventReader, filter: EventFilter | undefined) {
    this.#readEvent = readEvent;
    this.#filter = filter;
  }

  get usage(): Usage | undefined {
    return this.#state.usage;
  }

  get error(): StreamError | undefined {
    return this.#state.error;
  }

  get beginsWithError(): boolean {
    return this.#beginsWithError === true;
  }

  get isDone(): boolean {
    return this.#state.isDone;
  }

  get hasFinishReason(): boolean {
    return this.#state.hasFinishReason;
  }

  get isBetweenEvents(): boolean {
    return this.#reader.openEventFrom >= (this.#filter?.passedTo ?? this.#reader.streamBytes);
  }

  push(chunk: Buffer): ChunkReport {
    this.#reader.push(chunk);
    return this.#report(this.#filter === undefined ? chunk : this.#filter.pass(chunk, this.#reader.openEventFrom));
  }

  end(): ChunkReport {
    this.#reader.end();
    return this.#report(this.#filter?.flush() ?? NO_BYTES);
  }

  #count(event: SseEvent): void {
    const content = this.#readEvent(event, this.#state);
    this.#beginsWithError ??= this.#state.error !== undefined;
    this.#dataEvents++;
    if (content === "tokens") this.#tokenEvents++;
    if (content === "usageOnly") this.#filter?.remove(event.streamFrom, event.streamTo);
  }

  #report(forward: Buffer): ChunkReport {
    const report = { forward, tokenEvents: this.#tokenEvents, dataEvents: this.#dataEvents };
    this.#tokenEvents = 0;
    this.#dataEvents = 0;
    return report;
  }
}

const NO_BYTES = Buffer.alloc(0);
