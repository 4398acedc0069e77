import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Outcome, Routed } from "../core/index.ts";
import type { Clock, EndpointMonitor, ServedPool } from "../runtime/index.ts";
import { AnswerRelay, type AnswerTokens, NO_TOKENS } from "./answer/answer-relay.ts";
import { HeldRefusal } from "./answer/held-refusal.ts";
import type { ClientStream } from "./client/client-stream.ts";
import type { ErrorCode } from "./client/errors.ts";
import { upstreamHeaders } from "./headers.ts";
import type { AnswerOutcome } from "./outcome.ts";
import type { OutboundBody } from "./request/outbound-body.ts";
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
  /** How long the request was held before it was sent; undefined: it was not. */
  readonly heldMs: number | undefined;
  readonly upstream: Upstream;
  readonly watchdog: Watchdog;
  readonly clock: Clock;
  /** To an answer's head or, of a stream that generates, its first token. */
  readonly firstByteMs: number | undefined;
  readonly idleMs: number | undefined;
}

/** How an attempt ended. */
export type AttemptEnd =
  /** The client has its answer, or as much of it as there was. */
  | { readonly kind: "answered"; readonly outcome: AnswerOutcome; readonly tokens: AnswerTokens }
  /** No answer and nothing sent to the client: another endpoint may be tried. */
  | {
      readonly kind: "unreachable";
      readonly cause: string;
      /** The endpoint had the request when the connection was lost: the request itself may be why. */
      readonly wasSent: boolean;
    }
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
  readonly #monitor: EndpointMonitor;
  readonly #settle: (end: AttemptEnd) => void;
  /** Undefined: not connected. */
  #controller: Dispatcher.DispatchController | undefined;
  /** Undefined: no answer yet, or one that is held. */
  #relay: AnswerRelay | undefined;
  #held: HeldRefusal | undefined;
  #asksForUsage: boolean;
  #isOnReusedConnection = false;
  #isPaused = false;
  /** The endpoint was told to have answered well. */
  #isProven = false;
  #isSettled = false;

  constructor(request: AttemptRequest, place: AttemptPlace, settle: (end: AttemptEnd) => void) {
    super();
    this.#request = request;
    this.#place = place;
    this.#monitor = place.pool.monitor(place.routed.endpoint.id);
    this.#settle = settle;
    this.#asksForUsage = request.mayAskUsage && this.#monitor.acceptsUsageOption && !place.upstream.refusesUsageOption;
  }

  /** Whether the client is between two events of a stream. */
  get isBetweenEvents(): boolean {
    return this.#relay?.isBetweenEvents === true;
  }

  /** Sends the request; `settle` is called when it is over at this endpoint. */
  start(): void {
    this.#place.watchdog.watch(this);
    this.#send();
  }

  /** The client left: the endpoint is told at once, in whatever phase the attempt is. */
  clientClosed(): void {
    this.#finish("aborted", { kind: "client_closed", tokens: this.#tokens });
  }

  expired(): void {
    const { client } = this.#request;
    if (this.#isPaused) {
      client.break();
      this.#finish("aborted", { kind: "answered", outcome: "client_stalled", tokens: this.#tokens });
    } else if (this.#relay !== undefined && client.isCommitted) {
      this.#breakOff(
        this.#relay,
        "stalled",
        "upstream_timeout",
        "The endpoint fell silent in the middle of its answer.",
      );
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
    if (this.#asksForUsage && HeldRefusal.mayBe(status)) {
      this.#held = new HeldRefusal(status, headers);
      this.#moveDeadline(this.#place.idleMs);
    } else {
      this.#relay = this.#begin(status, headers);
      this.#progressed(this.#relay);
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isSettled || this.#held?.keep(chunk)) return;
    const relay = this.#relay ?? this.#release();
    const nowMs = this.#place.clock.nowMs();
    this.#monitor.health.progressed(nowMs);
    if (relay.pass(chunk, nowMs)) this.#progressed(relay, nowMs);
    if (relay.isClientBehind) this.#waitForClient(relay, controller);
  }

  onResponseEnd(): void {
    if (this.#isSettled) return;
    if (this.#held?.namesUsageOption) {
      this.#place.upstream.refusesUsageOption = true;
      this.#asksForUsage = false;
      this.#send();
      return;
    }
    const relay = this.#relay ?? this.#release();
    const outcome = relay.end(this.#place.clock.nowMs());
    if (outcome === "ok") this.#answeredWell(relay);
    else if (relay.awaitsFirstToken && isEngineFailure(relay.error?.code)) {
      this.#monitor.requestFailed("a stream began with an error");
    }
    if (outcome === "truncated") {
      this.#breakOff(relay, outcome, "upstream_error", "The endpoint ended its answer in the middle.");
    } else {
      this.#finish(outcome === "ok" ? "completed" : "failed", { kind: "answered", outcome, tokens: relay.tokens });
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isSettled) return;
    if (this.#relay !== undefined && this.#request.client.isCommitted) {
      const cause = "The connection to the endpoint broke in the middle of its answer.";
      this.#breakOff(this.#relay, "truncated", "upstream_error", cause);
      return;
    }
    // The engine may have closed an idle connection just as it was used again. That says nothing of the engine.
    if (this.#isOnReusedConnection) {
      this.#send("fresh");
      return;
    }
    const cause = causeOf(error);
    const wasSent = this.#controller !== undefined;
    if (wasSent) this.#monitor.answerLost();
    else this.#monitor.connectFailed(cause, this.#place.clock.nowMs());
    this.#finish("failed", { kind: "unreachable", cause, wasSent });
  }

  #send(connection: "any" | "fresh" = "any"): void {
    const { route, method, path, headers, clientAddress, requestId, body } = this.#request;
    const { upstream } = this.#place;
    this.#controller = undefined;
    this.#relay = undefined;
    this.#held = undefined;
    this.#isOnReusedConnection = false;
    this.#moveDeadline(this.#place.firstByteMs);
    this.#isOnReusedConnection = upstream.send(
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
      connection,
      this,
    );
  }

  #begin(status: number, headers: IncomingHttpHeaders): AnswerRelay {
    const { route, client, requestId } = this.#request;
    const { pool, routed, heldMs } = this.#place;
    const { balancer } = pool;
    if (isEngineFailure(status)) this.#monitor.requestFailed(`a request was answered with ${status}`);
    const source = { route, requestId, client, balancer, routed, heldMs, asksForUsage: this.#asksForUsage };
    return new AnswerRelay(source, status, headers);
  }

  /** The refusal was not about the option the balancer added: it is the client's. */
  #release(): AnswerRelay {
    const { status, headers, chunks } = this.#held as HeldRefusal;
    this.#held = undefined;
    const relay = this.#begin(status, headers);
    for (const chunk of chunks) relay.pass(chunk, this.#place.clock.nowMs());
    this.#relay = relay;
    return relay;
  }

  /** The answer moved on. Until a stream shows its first token the wait for its first byte goes on, comments or not. */
  #progressed(relay: AnswerRelay, nowMs: number = this.#place.clock.nowMs()): void {
    if (relay.awaitsFirstToken) return;
    this.#answeredWell(relay);
    this.#moveDeadline(this.#place.idleMs, nowMs);
  }

  /** Tells it once, and only of an answer that is one. */
  #answeredWell({ status }: AnswerRelay): void {
    if (this.#isProven || status >= 300) return;
    this.#isProven = true;
    this.#monitor.requestSucceeded(this.#place.routed.lease.openedAtMs);
  }

  #waitForClient(relay: AnswerRelay, controller: Dispatcher.DispatchController): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    controller.pause();
    relay.catchesUp(() => {
      this.#isPaused = false;
      this.#progressed(relay);
      controller.resume();
    });
  }

  #breakOff(relay: AnswerRelay, outcome: AnswerOutcome, code: ErrorCode, cause: string): void {
    relay.breakOff(code, cause);
    this.#finish("failed", { kind: "answered", outcome, tokens: relay.tokens });
  }

  #finish(kind: Outcome["kind"], end: AttemptEnd): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const { watchdog, pool, routed, clock } = this.#place;
    watchdog.unwatch(this);
    const { promptTokens, cachedTokens, outputTokens } = this.#tokens;
    pool.balancer.finish(routed.lease, { kind, promptTokens, cachedTokens, outputTokens }, clock.nowMs());
    // Harmless after a clean end; in every other case it frees the endpoint at once.
    this.#controller?.abort(OVER);
    this.#settle(end);
  }

  get #tokens(): AnswerTokens {
    return this.#relay?.tokens ?? NO_TOKENS;
  }

  #moveDeadline(limitMs: number | undefined, nowMs: number = this.#place.clock.nowMs()): void {
    this.deadlineMs = limitMs === undefined ? Number.POSITIVE_INFINITY : nowMs + limitMs;
  }
}

/**
 * What engines that are broken answer, as a status or as the code of an error in a stream. 501 says that the engine
 * cannot do such a thing, 429 and 503 that it is busy, everything below that the request is at fault.
 */
const ENGINE_FAILURES: ReadonlySet<number> = new Set([500, 502, 504]);

function isEngineFailure(code: string | number | undefined): boolean {
  return ENGINE_FAILURES.has(Number(code));
}

const OVER = new Error("the request is over");

/** What went wrong in a connection, by its code: messages of connection errors carry addresses. */
function causeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
