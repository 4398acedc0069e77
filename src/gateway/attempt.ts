import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Lease, Outcome, Routed } from "../core/index.ts";
import type { Clock, EndpointMonitor, ServedPool } from "../runtime/index.ts";
import { type AnswerReader, createAnswerReader } from "./answer-reader.ts";
import type { ClientStream } from "./client-stream.ts";
import { errorEvent } from "./error-answer.ts";
import type { ErrorCode } from "./errors.ts";
import { answerHeaders, upstreamHeaders } from "./headers.ts";
import { HeldRefusal } from "./held-refusal.ts";
import type { OutboundBody } from "./outbound-body.ts";
import type { AnswerOutcome } from "./outcome.ts";
import { PASSTHROUGH, type Route } from "./routes.ts";
import type { Upstream } from "./upstream.ts";
import { type Watchdog, Watched } from "./watchdog.ts";

/** What an attempt needs to know of its request; the same for all attempts of one request. */
export interface AttemptRequest {
  readonly route: Route;
  readonly method: Dispatcher.HttpMethod;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly clientAddress: string | undefined;
  readonly requestId: string;
  readonly body: OutboundBody;
  /** The client left it open whether usage is reported, so the balancer may ask for itself. */
  readonly mayAskUsage: boolean;
  readonly client: ClientStream;
}

/** Where the attempt goes, and what it is watched by. */
export interface AttemptPlace {
  readonly pool: ServedPool;
  readonly routed: Routed;
  readonly upstream: Upstream;
  readonly watchdog: Watchdog;
  readonly clock: Clock;
  readonly firstByteMs: number | undefined;
  readonly idleMs: number | undefined;
}

/** What passed of an answer, for metrics. */
export interface AnswerTokens {
  /** Undefined: no token was seen before the end. */
  readonly firstTokenAtMs: number | undefined;
  readonly lastTokenAtMs: number | undefined;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

/** How an attempt ended. */
export type AttemptEnd =
  /** The client has its answer, or as much of it as there was. */
  | { readonly kind: "answered"; readonly outcome: AnswerOutcome; readonly status: number; readonly tokens: AnswerTokens }
  /** No answer and nothing sent to the client: another endpoint may be tried. */
  | { readonly kind: "unreachable"; readonly cause: string }
  /** No answer in time, and the prompt may be half computed: not tried elsewhere. */
  | { readonly kind: "no_answer" }
  | { readonly kind: "client_closed"; readonly tokens: AnswerTokens };

/**
 * One request at one endpoint, under one lease. Owns the exchange with the endpoint from sending to
 * its end, and settles exactly once: by the answer's end, a failure, a time-out or the client's leaving.
 */
export class Attempt extends Watched implements Dispatcher.DispatchHandler {
  readonly #request: AttemptRequest;
  readonly #place: AttemptPlace;
  readonly #lease: Lease;
  readonly #monitor: EndpointMonitor;
  readonly #settle: (end: AttemptEnd) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #reader: AnswerReader | undefined;
  #held: HeldRefusal | undefined;
  #status = 0;
  #asksForUsage: boolean;
  #isReplay = false;
  #isSettled = false;
  #isClientBehind = false;
  #lastTokenAtMs: number | undefined;

  constructor(request: AttemptRequest, place: AttemptPlace, settle: (end: AttemptEnd) => void) {
    super();
    this.#request = request;
    this.#place = place;
    this.#lease = place.routed.lease;
    this.#monitor = place.pool.monitor(place.routed.endpoint.id);
    this.#settle = settle;
    this.#asksForUsage = request.mayAskUsage && this.#monitor.acceptsUsageOption && !place.upstream.refusesUsageOption;
  }

  /** Sends the request; `settle` is called when it is over at this endpoint. */
  start(): void {
    this.#place.watchdog.watch(this);
    this.#send();
  }

  /** The client left: the endpoint is told at once, in whatever phase the attempt is. */
  clientClosed(): void {
    this.#finish("aborted", { kind: "client_closed", tokens: this.#tokens() });
  }

  expired(): void {
    if (this.#isClientBehind) {
      this.#request.client.break();
      this.#finish("aborted", this.#answered("client_stalled"));
    } else if (this.#request.client.isCommitted) {
      this.#breakOff("stalled", "upstream_timeout", "The endpoint fell silent in the middle of its answer.");
    } else {
      this.#finish("failed", { kind: "no_answer" });
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled) controller.abort(OVER);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#isSettled || status < 200) return;
    this.#status = status;
    this.#moveDeadline(this.#place.idleMs);
    if (status === 400 && this.#asksForUsage) this.#held = new HeldRefusal(headers);
    else this.#begin(headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isSettled) return;
    if (this.#held !== undefined) {
      if (this.#held.keep(chunk)) return;
      this.#release(this.#held);
    }
    const reader = this.#reader as AnswerReader;
    const { forward, tokenEvents, dataEvents } = reader.push(chunk);
    const nowMs = this.#place.clock.nowMs();
    this.#monitor.health.progressed(nowMs);
    if (tokenEvents > 0) this.#countTokens(tokenEvents, nowMs);
    // Comments keep a connection open, but they are no progress of the generation.
    if (dataEvents > 0) this.#moveDeadline(this.#place.idleMs, nowMs);
    if (!this.#request.client.write(forward)) this.#waitForClient(controller);
  }

  onResponseEnd(): void {
    if (this.#isSettled) return;
    if (this.#held !== undefined) {
      if (this.#held.namesUsageOption) {
        this.#place.upstream.refusesUsageOption = true;
        this.#asksForUsage = false;
        this.#held = undefined;
        this.#send();
        return;
      }
      this.#release(this.#held);
    }
    const reader = this.#reader as AnswerReader;
    const { forward, tokenEvents } = reader.end();
    if (tokenEvents > 0) this.#countTokens(tokenEvents, this.#place.clock.nowMs());
    this.#request.client.write(forward);
    if (!reader.isWhole && reader.error === undefined) {
      this.#breakOff("truncated", "upstream_error", "The endpoint ended its answer in the middle.");
      return;
    }
    this.#request.client.end();
    const outcome = this.#outcome(reader);
    this.#finish(outcome === "ok" ? "completed" : "failed", this.#answered(outcome));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isSettled) return;
    if (this.#request.client.isCommitted) {
      this.#breakOff("truncated", "upstream_error", "The connection to the endpoint broke in the middle of its answer.");
      return;
    }
    const cause = causeOf(error);
    // A kept-alive connection may have been closed by the engine just as it was used again: that says
    // nothing of the engine, so one replay on the same endpoint comes first.
    if (this.#controller !== undefined && !this.#isReplay) {
      this.#isReplay = true;
      this.#controller = undefined;
      this.#send();
      return;
    }
    this.#monitor.connectFailed(cause, this.#place.clock.nowMs());
    this.#finish("failed", { kind: "unreachable", cause });
  }

  #send(): void {
    const { route, method, path, headers, clientAddress, requestId, body } = this.#request;
    const { upstream } = this.#place;
    this.#moveDeadline(this.#place.firstByteMs);
    upstream.send(
      {
        method,
        path,
        headers: upstreamHeaders(headers, {
          clientAddress,
          requestId,
          apiKey: upstream.apiKey,
          mustReadAnswer: route !== PASSTHROUGH,
          keepsContentEncoding: body.keepsContentEncoding(this.#asksForUsage),
        }),
        body: body.bytes(this.#asksForUsage),
      },
      this,
    );
  }

  #begin(headers: IncomingHttpHeaders): void {
    const { route, client, requestId } = this.#request;
    const { routed } = this.#place;
    this.#reader = createAnswerReader(route, this.#status, headers, this.#asksForUsage);
    if (this.#status < 300) this.#monitor.requestSucceeded(this.#lease.openedAtMs);
    client.begin(
      this.#status,
      answerHeaders(headers, {
        endpointId: routed.endpoint.id,
        policy: routed.explanation.policy,
        requestId,
        dropsLength: this.#asksForUsage && this.#reader.isStream,
      }),
      this.#reader.isStream,
    );
  }

  /** The refusal was not about the option the balancer added: it is the client's. */
  #release(held: HeldRefusal): void {
    this.#held = undefined;
    this.#begin(held.headers);
    for (const chunk of held.chunks) this.#request.client.write(chunk);
  }

  #countTokens(tokens: number, nowMs: number): void {
    const { balancer } = this.#place.pool;
    this.#lastTokenAtMs = nowMs;
    if (this.#lease.isRunning) {
      balancer.progress(this.#lease, tokens, nowMs);
      return;
    }
    balancer.firstToken(this.#lease, nowMs);
    if (tokens > 1) balancer.progress(this.#lease, tokens - 1, nowMs);
  }

  #waitForClient(controller: Dispatcher.DispatchController): void {
    if (this.#isClientBehind) return;
    this.#isClientBehind = true;
    controller.pause();
    this.#request.client.onDrain(() => {
      this.#isClientBehind = false;
      this.#moveDeadline(this.#place.idleMs);
      controller.resume();
    });
  }

  #breakOff(outcome: AnswerOutcome, code: ErrorCode, cause: string): void {
    const { client, route, requestId } = this.#request;
    const canSpeak = this.#reader?.isStream === true && this.#reader.isBetweenEvents;
    client.break(canSpeak && !this.#isClientBehind ? errorEvent(route.dialect, code, { cause, requestId }) : undefined);
    this.#finish("failed", this.#answered(outcome));
  }

  #finish(kind: Outcome["kind"], end: AttemptEnd): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const { watchdog, pool, clock } = this.#place;
    watchdog.unwatch(this);
    const { promptTokens, outputTokens } = this.#tokens();
    pool.balancer.finish(this.#lease, { kind, promptTokens, outputTokens }, clock.nowMs());
    // Harmless after a clean end; in every other case it frees the endpoint at once.
    this.#controller?.abort(OVER);
    this.#settle(end);
  }

  #answered(outcome: AnswerOutcome): AttemptEnd {
    return { kind: "answered", outcome, status: this.#status, tokens: this.#tokens() };
  }

  #outcome(reader: AnswerReader): AnswerOutcome {
    if (reader.error !== undefined) return "in_band_error";
    if (this.#status >= 500) return "upstream_5xx";
    return this.#status >= 400 ? "upstream_4xx" : "ok";
  }

  #tokens(): AnswerTokens {
    const usage = this.#reader?.usage;
    const seen = this.#lastTokenAtMs === undefined ? undefined : this.#lease.generatedTokens;
    return {
      firstTokenAtMs: this.#lastTokenAtMs === undefined ? undefined : this.#lease.firstTokenAtMs,
      lastTokenAtMs: this.#lastTokenAtMs,
      promptTokens: usage?.promptTokens,
      cachedTokens: usage?.cachedTokens,
      outputTokens: usage?.completionTokens ?? seen,
    };
  }

  #moveDeadline(limitMs: number | undefined, nowMs: number = this.#place.clock.nowMs()): void {
    this.deadlineMs = limitMs === undefined ? Number.POSITIVE_INFINITY : nowMs + limitMs;
  }
}

const OVER = new Error("the request is over");

/** What went wrong in a connection, by its code: messages of connection errors carry addresses. */
function causeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
