import type { IncomingHttpHeaders } from "node:http";
import { isCoded, isEventStream } from "../headers.ts";
import type { ReadDialect, Route } from "../routes.ts";
import { readAnswerUsage } from "./answer-usage.ts";
import { brokenOffIn } from "./broken-off.ts";
import { type ChunkReport, createStreamMeter, type StreamError, type StreamMeter } from "./stream-meter.ts";
import type { Usage } from "./usage.ts";

/** Reads an answer as it passes, streamed or whole. */
export interface AnswerReader {
  readonly isStream: boolean;
  /** Generated tokens are seen as they come, one event after the other. */
  readonly showsTokens: boolean;
  readonly usage: Usage | undefined;
  /** An error told inside an answer that began well. */
  readonly error: StreamError | undefined;
  /** A stream whose first event with data was that error. */
  readonly beginsWithError: boolean;
  /** False: it ended in the middle; of a stream: without its end mark and without a reason to stop. */
  readonly isWhole: boolean;
  /** Whether the balancer may put an event of its own in. */
  readonly isBetweenEvents: boolean;
  push(chunk: Buffer): ChunkReport;
  end(): ChunkReport;
}

/** @param dropsUsageEvent The balancer asked for usage, the client did not. */
export function createAnswerReader(
  route: Route,
  status: number,
  headers: IncomingHttpHeaders,
  dropsUsageEvent: boolean,
): AnswerReader {
  const { dialect, generates } = route;
  const isStream = isEventStream(headers);
  if (dialect === "passthrough" || isCoded(headers) || status >= 300) return new OpaqueReader(isStream);
  if (isStream) return new StreamReader(dialect, generates, dropsUsageEvent);
  return new WholeReader(dialect, endsWithConnection(headers) && isJson(headers));
}

/** Nothing tells the end of the body from a connection that broke (RFC 9112, 6.3). */
function endsWithConnection(headers: IncomingHttpHeaders): boolean {
  return headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
}

function isJson(headers: IncomingHttpHeaders): boolean {
  return headers["content-type"]?.startsWith("application/json") === true;
}

/** An answer that cannot be looked into, or is not worth it: it only passes. */
class OpaqueReader implements AnswerReader {
  readonly isStream: boolean;
  readonly showsTokens = false;
  readonly usage: Usage | undefined = undefined;
  readonly error: undefined = undefined;
  readonly beginsWithError = false;
  readonly isWhole = true;
  readonly isBetweenEvents = false;

  constructor(isStream: boolean) {
    this.isStream = isStream;
  }

  push(chunk: Buffer): ChunkReport {
    return { forward: chunk, tokenEvents: 0, dataEvents: 1 };
  }

  end(): ChunkReport {
    return NOTHING;
  }
}

class StreamReader implements AnswerReader {
  readonly isStream = true;
  /** The route generates. */
  readonly showsTokens: boolean;
  readonly #meter: StreamMeter;

  constructor(dialect: ReadDialect, generates: boolean, dropsUsageEvent: boolean) {
    this.showsTokens = generates;
    this.#meter = createStreamMeter(dialect, { dropUsageEvent: dropsUsageEvent });
  }

  get usage(): Usage | undefined {
    return this.#meter.usage;
  }

  get error(): StreamError | undefined {
    return this.#meter.error;
  }

  get beginsWithError(): boolean {
    return this.#meter.beginsWithError;
  }

  get isWhole(): boolean {
    return !this.showsTokens || this.#meter.isDone || this.#meter.hasFinishReason;
  }

  get isBetweenEvents(): boolean {
    return this.#meter.isBetweenEvents;
  }

  push(chunk: Buffer): ChunkReport {
    return this.#meter.push(chunk);
  }

  end(): ChunkReport {
    return this.#meter.end();
  }
}

/** One JSON body: what it says is found when it is complete. */
class WholeReader implements AnswerReader {
  readonly isStream = false;
  readonly showsTokens = false;
  readonly beginsWithError = false;
  readonly isBetweenEvents = false;
  readonly #dialect: ReadDialect;
  /** Nothing but its own last character tells that it is whole. */
  readonly #endsItself: boolean;
  #isWhole = true;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #usage: Usage | undefined;
  #error: StreamError | undefined;

  constructor(dialect: ReadDialect, endsItself: boolean) {
    this.#dialect = dialect;
    this.#endsItself = endsItself;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  get error(): StreamError | undefined {
    return this.#error;
  }

  push(chunk: Buffer): ChunkReport {
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    // Usage stands near the start or at the end: of a large answer (embeddings) only its end is kept.
    while (this.#chunks.length > 1 && this.#bytes - (this.#chunks[0] as Buffer).length >= MAX_KEPT_BYTES) {
      this.#bytes -= (this.#chunks.shift() as Buffer).length;
    }
    return { forward: chunk, tokenEvents: 0, dataEvents: 1 };
  }

  end(): ChunkReport {
    const [first = NO_BYTES, ...more] = this.#chunks;
    const answer = more.length === 0 ? first : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#usage = readAnswerUsage(this.#dialect, answer);
    const brokenOff = brokenOffIn(this.#dialect, answer);
    if (brokenOff !== undefined) this.#error = { message: undefined, code: brokenOff };
    if (this.#endsItself) this.#isWhole = END_OF_JSON.test(answer.toString("latin1", Math.max(0, answer.length - 64)));
    return NOTHING;
  }
}

/** All these answers are objects or lists. */
const END_OF_JSON = /[}\]]\s*$/;

const MAX_KEPT_BYTES = 1024 * 1024;

const NO_BYTES = Buffer.alloc(0);

const NOTHING: ChunkReport = { forward: NO_BYTES, tokenEvents: 0, dataEvents: 0 };
