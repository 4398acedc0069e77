import type { IncomingHttpHeaders } from "node:http";
import type { Lease } from "../../core/index.ts";
import type { LiveBalancer } from "../../runtime/index.ts";
import type { AnswerHead, ClientStream } from "../client/client-stream.ts";
import { errorEvent } from "../client/error-answer.ts";
import type { ErrorCode } from "../client/errors.ts";
import { answerHeaders, type HeaderList, isCoded } from "../headers.ts";
import type { AnswerOutcome } from "../outcome.ts";
import type { Route } from "../routes.ts";
import { type AnswerReader, createAnswerReader } from "./answer-reader.ts";
import { GrowingBuffer } from "./growing-buffer.ts";
import type { StreamError } from "./stream-meter.ts";

/** What passed of an answer, for metrics. */
export interface AnswerTokens {
  /** Undefined: no token was seen before the end. */
  readonly firstTokenAtMs: number | undefined;
  readonly lastTokenAtMs: number | undefined;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

/** Nothing was seen of an answer. */
export const NO_TOKENS: AnswerTokens = {
  firstTokenAtMs: undefined,
  lastTokenAtMs: undefined,
  promptTokens: undefined,
  cachedTokens: undefined,
  outputTokens: undefined,
};

/** An answer's request, and who takes it and who is told of its tokens. */
export interface AnswerSource {
  readonly route: Route;
  readonly requestId: string;
  readonly client: ClientStream;
  readonly balancer: LiveBalancer;
  readonly lease: Lease;
  /** By which policy the endpoint was chosen. */
  readonly policy: string;
  /** How long the request was held before it was sent; undefined: it was not. */
  readonly heldMs: number | undefined;
  /** The balancer asked for usage, the client did not. */
  readonly asksForUsage: boolean;
  /** What is left of the caller's limits, as headers; empty: it has none. */
  readonly limits: HeaderList;
}

/**
 * One endpoint's answer on its way to the client. It keeps what comes until it is opened, so that an answer that turns
 * out to be no good can be let go; from then on it passes all on as it comes. Either way it counts what it carries.
 */
export class AnswerRelay {
  readonly status: number;
  readonly endpointId: string;
  /** The endpoint's own wish to be left alone, as it wrote it. */
  readonly retryAfter: string | undefined;
  readonly #source: AnswerSource;
  readonly #client: ClientStream;
  readonly #lease: Lease;
  readonly #reader: AnswerReader;
  /** Undefined: the client has it. */
  #head: AnswerHead | undefined;
  readonly #isPlainStream: boolean;
  /** What came before it was opened. */
  readonly #kept = new GrowingBuffer();
  #isOpen = false;
  /** The client was told of a plain stream already, and this is none. */
  #isUntellable = false;
  #lastTokenAtMs: number | undefined;

  constructor(source: AnswerSource, status: number, headers: IncomingHttpHeaders) {
    const { route, requestId, client, lease, policy, heldMs, asksForUsage } = source;
    this.status = status;
    this.endpointId = lease.endpointId;
    this.retryAfter = headers["retry-after"];
    this.#source = source;
    this.#client = client;
    this.#lease = lease;
    this.#reader = createAnswerReader(route, status, headers, asksForUsage);
    const { isStream } = this.#reader;
    this.#isPlainStream = isStream && status < 300 && !isCoded(headers);
    // Events are removed from a stream, and one put in where it breaks: within a length that would pass for its end.
    const dropsLength = isStream;
    const head = answerHeaders(headers, {
      endpointId: lease.endpointId,
      policy,
      heldMs,
      requestId,
      dialect: route.dialect,
      dropsLength,
      limits: source.limits,
    });
    const length = dropsLength ? undefined : headers["content-length"];
    this.#head = { status, headers: head, isStream, bodyBytes: length === undefined ? undefined : Number(length) };
  }

  /** The client is sent this answer: nothing can be taken back. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isStream(): boolean {
    return this.#reader.isStream;
  }

  /** More was kept than an answer that is not to be seen has any reason to hold. */
  get isTooLargeToKeep(): boolean {
    return this.#kept.length > MAX_KEPT_BYTES;
  }

  /** Whether a word stands in what is kept. */
  names(word: string): boolean {
    return this.#kept.includes(word);
  }

  /** A stream whose first event with data was an error: nothing was generated. */
  get beginsWithError(): boolean {
    return this.#reader.beginsWithError;
  }

  /** Sends the client the head and all that was kept. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#isUntellable = this.#client.wasOpenedEarly && !this.#isPlainStream;
    this.#client.begin(this.#head as AnswerHead);
    this.#head = undefined;
    this.#write(this.#kept.take());
  }

  /** The client has not taken what it was sent: send no more before it `catchesUp`. */
  get isClientBehind(): boolean {
    return this.#isOpen && this.#client.isBehind;
  }

  /** Whether the client is between two events, so that something may be put in. */
  get isBetweenEvents(): boolean {
    return this.#reader.isStream && this.#reader.isBetweenEvents && !this.isClientBehind;
  }

  /** A stream whose tokens are seen as they come. */
  get showsTokens(): boolean {
    return this.#reader.showsTokens;
  }

  /** A stream that has shown no token yet: its prompt is still being computed. */
  get awaitsFirstToken(): boolean {
    return this.#reader.showsTokens && this.#lastTokenAtMs === undefined;
  }

  /** An error that the engine told inside the answer; undefined: none. */
  get error(): StreamError | undefined {
    return this.#reader.error;
  }

  get tokens(): AnswerTokens {
    const { usage } = this.#reader;
    const lastTokenAtMs = this.#lastTokenAtMs;
    const wasSeen = lastTokenAtMs !== undefined;
    return {
      firstTokenAtMs: wasSeen ? this.#lease.firstTokenAtMs : undefined,
      lastTokenAtMs,
      promptTokens: usage?.promptTokens,
      cachedTokens: usage?.cachedTokens,
      outputTokens: usage?.completionTokens ?? (wasSeen ? this.#lease.generatedTokens : undefined),
    };
  }

  /** Takes one chunk. @returns whether it was progress: comments keep a connection open but generate nothing. */
  pass(chunk: Buffer, nowMs: number): boolean {
    const { forward, tokenEvents, dataEvents } = this.#reader.push(chunk);
    if (tokenEvents > 0) this.#countTokens(tokenEvents, nowMs);
    this.#followUsage(nowMs);
    this.#write(forward);
    return dataEvents > 0;
  }

  /** Calls `resume` once the client has taken everything. */
  catchesUp(resume: () => void): void {
    this.#client.onDrain(resume);
  }

  /** The endpoint's body is over. `outcome` says what it was, `close` tells the client. */
  end(nowMs: number): void {
    const { forward, tokenEvents } = this.#reader.end();
    if (tokenEvents > 0) this.#countTokens(tokenEvents, nowMs);
    this.#write(forward);
  }

  /** Of an answer whose body is over. `truncated`: it was not whole, so it must not be closed. */
  get outcome(): AnswerOutcome {
    const { error, isWhole } = this.#reader;
    // What its client sees of an answer that cannot be told is an error inside a stream.
    if (error !== undefined || (this.#isUntellable && this.status < 300)) return "in_band_error";
    if (!isWhole) return "truncated";
    if (this.status >= 500) return "upstream_5xx";
    return this.status >= 400 ? "upstream_4xx" : "ok";
  }

  /** Ends the client's answer as a whole one. */
  close(): void {
    this.open();
    if (!this.#isUntellable) this.#client.end();
    else this.#breakWith("upstream_error", `The endpoint answered with ${this.status} and no plain stream.`);
  }

  /** No more will come: breaks the answer where it is, so that it cannot pass for a whole one. */
  breakOff(code: ErrorCode, cause: string): void {
    if (this.isBetweenEvents || this.#isUntellable) this.#breakWith(code, cause);
    else this.#client.break();
  }

  #breakWith(code: ErrorCode, cause: string): void {
    const { route, requestId } = this.#source;
    this.#client.break(errorEvent(route.dialect, code, { cause, requestId }));
  }

  #write(bytes: Buffer): void {
    if (this.#isUntellable) return;
    if (this.#isOpen) this.#client.write(bytes);
    else this.#kept.append(bytes, 0, bytes.length);
  }

  #countTokens(tokens: number, nowMs: number): void {
    const { balancer } = this.#source;
    this.#lastTokenAtMs = nowMs;
    if (this.#lease.isRunning) {
      balancer.progress(this.#lease, tokens, nowMs);
      return;
    }
    balancer.firstToken(this.#lease, nowMs);
    if (tokens > 1) balancer.progress(this.#lease, tokens - 1, nowMs);
  }

  /**
   * An engine that counts while it generates knows better than the number of its events: one may hold several tokens.
   * What it says at the end is left for the end: it comes at once, and would pass for a burst of tokens.
   */
  #followUsage(nowMs: number): void {
    const counted = this.#reader.usage?.completionTokens;
    if (counted === undefined || !Number.isSafeInteger(counted) || this.#reader.isWhole) return;
    const unseen = counted - this.#lease.generatedTokens;
    if (unseen > 0 && this.#lease.isRunning) this.#source.balancer.progress(this.#lease, unseen, nowMs);
  }
}

/** Errors have some hundred bytes; what comes in a stream before its first event has less. */
const MAX_KEPT_BYTES = 64 * 1024;
