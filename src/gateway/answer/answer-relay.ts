import type { IncomingHttpHeaders } from "node:http";
import type { Lease, Routed } from "../../core/index.ts";
import type { LiveBalancer } from "../../runtime/index.ts";
import type { ClientStream } from "../client/client-stream.ts";
import { errorEvent } from "../client/error-answer.ts";
import type { ErrorCode } from "../client/errors.ts";
import { answerHeaders } from "../headers.ts";
import type { AnswerOutcome } from "../outcome.ts";
import type { Route } from "../routes.ts";
import { type AnswerReader, createAnswerReader } from "./answer-reader.ts";
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
  readonly routed: Routed;
  /** How long the request was held before it was sent; undefined: it was not. */
  readonly heldMs: number | undefined;
  /** The balancer asked for usage, the client did not. */
  readonly asksForUsage: boolean;
}

/** Passes one endpoint's answer on to the client as it comes, and counts what it carries. */
export class AnswerRelay {
  readonly status: number;
  readonly #source: AnswerSource;
  readonly #client: ClientStream;
  readonly #lease: Lease;
  readonly #reader: AnswerReader;
  #isClientBehind = false;
  #lastTokenAtMs: number | undefined;

  constructor(source: AnswerSource, status: number, headers: IncomingHttpHeaders) {
    const { route, requestId, client, routed, heldMs, asksForUsage } = source;
    this.status = status;
    this.#source = source;
    this.#client = client;
    this.#lease = routed.lease;
    this.#reader = createAnswerReader(route, status, headers, asksForUsage);
    const { isStream } = this.#reader;
    const dropsLength = asksForUsage && isStream;
    const head = answerHeaders(headers, {
      endpointId: routed.endpoint.id,
      policy: routed.explanation.policy,
      heldMs,
      requestId,
      dialect: route.dialect,
      dropsLength,
    });
    const length = dropsLength ? undefined : headers["content-length"];
    client.begin({ status, headers: head, isStream, bodyBytes: length === undefined ? undefined : Number(length) });
  }

  /** The client has not taken what it was sent: send no more before it `catchesUp`. */
  get isClientBehind(): boolean {
    return this.#isClientBehind;
  }

  /** Whether the client is between two events, so that something may be put in. */
  get isBetweenEvents(): boolean {
    return this.#reader.isStream && this.#reader.isBetweenEvents && !this.#isClientBehind;
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

  /** Passes one chunk on. @returns whether it was progress: comments keep a connection open but generate nothing. */
  pass(chunk: Buffer, nowMs: number): boolean {
    const { forward, tokenEvents, dataEvents } = this.#reader.push(chunk);
    if (tokenEvents > 0) this.#countTokens(tokenEvents, nowMs);
    this.#followUsage(nowMs);
    if (!this.#client.write(forward)) this.#isClientBehind = true;
    return dataEvents > 0;
  }

  /** Calls `resume` once the client has taken everything. */
  catchesUp(resume: () => void): void {
    this.#client.onDrain(() => {
      this.#isClientBehind = false;
      resume();
    });
  }

  /** The endpoint's body is over. @returns `truncated`: it was not whole, and the client has not been told of its end. */
  end(nowMs: number): AnswerOutcome {
    const { forward, tokenEvents } = this.#reader.end();
    if (tokenEvents > 0) this.#countTokens(tokenEvents, nowMs);
    this.#client.write(forward);
    const { error, isWhole } = this.#reader;
    if (error === undefined && !isWhole) return "truncated";
    this.#client.end();
    if (error !== undefined) return "in_band_error";
    if (this.status >= 500) return "upstream_5xx";
    return this.status >= 400 ? "upstream_4xx" : "ok";
  }

  /** No more will come: breaks the answer where it is, so that it cannot pass for a whole one. */
  breakOff(code: ErrorCode, cause: string): void {
    const { route, requestId } = this.#source;
    this.#client.break(this.isBetweenEvents ? errorEvent(route.dialect, code, { cause, requestId }) : undefined);
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
