import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Outcome } from "../core/index.ts";
import type { EndpointMonitor } from "../runtime/index.ts";
import { AnswerRelay, type AnswerTokens, NO_TOKENS } from "./answer/answer-relay.ts";
import type { AttemptEnd, AttemptHost, AttemptPlace, AttemptRequest } from "./attempt-terms.ts";
import type { ErrorCode } from "./client/errors.ts";
import { causeOf, type Failure, retryAfterOf } from "./failover/failure.ts";
import { Reserve, type ReserveStep } from "./failover/reserve.ts";
import { type Verdict, verdictOf } from "./failover/verdict.ts";
import { upstreamHeaders } from "./headers.ts";
import type { AnswerOutcome } from "./outcome.ts";
import { PASSTHROUGH } from "./routes.ts";
import { Deadline, Watched } from "./watchdog.ts";

/**
 * One request at one endpoint, under one lease. Owns the exchange with the endpoint from sending to its end, tells the
 * endpoint's monitor once what became of it, and settles exactly once: by the answer's end, a failure, a time-out or
 * the client's leaving.
 */
export class Attempt extends Watched implements Dispatcher.DispatchHandler {
  readonly endpointId: string;
  readonly #request: AttemptRequest;
  readonly #place: AttemptPlace;
  readonly #host: AttemptHost;
  readonly #monitor: EndpointMonitor;
  /** Undefined: the client sees the answer, or there is none whose first event it waits for. */
  #guard: Deadline | undefined;
  /** Undefined: not connected. */
  #controller: Dispatcher.DispatchController | undefined;
  /** Undefined: no answer yet. */
  #relay: AnswerRelay | undefined;
  /** What keeps the answer from the client; there is one whenever there is an answer that is not open. */
  #reserve: Reserve | undefined;
  #asksForUsage: boolean;
  #isOnReusedConnection = false;
  /** It went out on a connection that died, and its endpoint may have begun on it. */
  #wasSentInVain = false;
  #isPaused = false;
  /** The endpoint was told to have answered well. */
  #isProven = false;
  /** When it last moved on. */
  #movedAtMs = 0;
  #isSettled = false;

  constructor(request: AttemptRequest, place: AttemptPlace, host: AttemptHost) {
    super();
    const { pool, lease, upstream } = place;
    this.endpointId = lease.endpointId;
    this.#request = request;
    this.#place = place;
    this.#host = host;
    this.#monitor = pool.monitor(this.endpointId);
    const isOptionWelcome = this.#monitor.acceptsUsageOption && !upstream.refusesUsageOption;
    this.#asksForUsage = isOptionWelcome && request.body.askForUsage();
  }

  /** Whether the client is between two events of a stream. */
  get isBetweenEvents(): boolean {
    return this.#relay?.isOpen === true && this.#relay.isBetweenEvents;
  }

  /** Sends the request; the host is told when it is over at this endpoint. */
  start(): void {
    this.#place.watchdog.watch(this);
    this.#send(this.#request.isRepeatable ? "any" : "fresh");
  }

  /** The client left: the endpoint is told at once, in whatever phase the attempt is. */
  clientClosed(): void {
    this.#finish("aborted", "neutral", { kind: "client_closed", tokens: this.#tokens });
  }

  /** It is of no use any more: another attempt of the same request has the client, or the balancer failed. */
  outrun(): void {
    this.#finish("aborted", "neutral", { kind: "outrun" });
  }

  /** The request took longer than any may. */
  timedOut(): void {
    if (this.#relay?.isOpen) {
      this.#relay.breakOff("upstream_timeout", "The request took longer than any may.");
      this.#finish("aborted", "neutral", { kind: "answered", outcome: "timed_out", tokens: this.#tokens });
    } else {
      this.#finish("aborted", "neutral", { kind: "timed_out" });
    }
  }

  override isDue(nowMs: number): boolean {
    return super.isDue(nowMs) || this.#isLifeless || this.#isForsaken(nowMs);
  }

  expired(): void {
    const relay = this.#relay;
    if (this.#isPaused) {
      this.#request.client.break();
      this.#finish("aborted", "neutral", { kind: "answered", outcome: "client_stalled", tokens: this.#tokens });
    } else if (relay?.isOpen) {
      const [outcome, cause] = relay.awaitsFirstToken ? NO_TOKEN_CAME : FELL_SILENT;
      this.#breakOff(relay, outcome, "upstream_timeout", cause);
    } else if (this.#isLifeless) {
      this.#failUnanswered("lost", "no sign of life");
    } else {
      this.#failUnanswered("slow", "no answer in time");
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled) controller.abort(OVER);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#isSettled || status < 200) return;
    // It has answered, so the connection was not one that had died of idleness.
    this.#isOnReusedConnection = false;
    const { relay, reserve } = this.#receive(status, headers);
    this.#relay = relay;
    this.#reserve = reserve;
    this.#take(reserve.head(), relay, reserve);
    if (reserve.reason !== "fallback") this.#progressed(relay);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isSettled) return;
    const relay = this.#relay as AnswerRelay;
    const nowMs = this.#place.clock.nowMs();
    this.#monitor.health.progressed(nowMs);
    const isProgress = relay.isOpen ? relay.pass(chunk, nowMs) : this.#keep(relay, chunk, nowMs);
    if (!relay.isOpen) return;
    if (isProgress) this.#progressed(relay, nowMs);
    if (relay.isClientBehind) this.#waitForClient(relay, controller);
  }

  onResponseEnd(): void {
    if (this.#isSettled) return;
    const relay = this.#relay as AnswerRelay;
    if (this.#reserve?.isAboutOption) {
      this.#place.upstream.refusesUsageOption = true;
      this.#asksForUsage = false;
      this.#send("any");
      return;
    }
    relay.end(this.#place.clock.nowMs());
    const step = this.#reserve?.end() ?? "open";
    if (step === "fallback") this.#failWith(relay, relay);
    else if (step === "drop") this.#fail("lost", "the stream ended before it had begun");
    else this.#end(relay);
  }

  /** The whole of an answer has come, for the client to see. */
  #end(relay: AnswerRelay): void {
    this.#open(relay);
    const { outcome, tokens } = relay;
    if (outcome === "truncated") {
      this.#breakOff(relay, outcome, "upstream_error", "The endpoint ended its answer in the middle.");
    } else {
      relay.close();
      const kind = outcome === "ok" ? "completed" : "failed";
      this.#finish(kind, verdictOf(relay), { kind: "answered", outcome, tokens }, `a request ended in ${outcome}`);
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isSettled) return;
    const relay = this.#relay;
    const cause = causeOf(error);
    if (relay?.isOpen) {
      const words = "The connection to the endpoint broke in the middle of its answer.";
      this.#breakOff(relay, "truncated", "upstream_error", words);
    } else if (this.#controller === undefined) {
      // A used connection may close before the request goes out, and no other be had in its place.
      this.#failUnconnected(cause);
    } else if (this.#isStale()) {
      this.#wasSentInVain = true;
      this.#send("fresh");
    } else {
      this.#failUnanswered("lost", cause);
    }
  }

  /**
   * The engine may have closed an idle connection just as it was used again, which says nothing of the engine. Whether it
   * has shows at once; a connection that dies later had been alive.
   */
  #isStale(): boolean {
    return this.#isOnReusedConnection && this.#place.clock.nowMs() - this.#movedAtMs < STALE_MS;
  }

  #send(connection: "any" | "fresh"): void {
    const { route, method, path, headers, clientAddress, requestId, body } = this.#request;
    const { upstream, number } = this.#place;
    this.#controller = undefined;
    this.#relay = undefined;
    this.#reserve = undefined;
    this.#isOnReusedConnection = false;
    this.#moveDeadline(this.#place.firstByteMs);
    this.#isOnReusedConnection = upstream.send(
      {
        method,
        path,
        headers: upstreamHeaders(headers, {
          clientAddress,
          requestId,
          attempt: number,
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

  #receive(status: number, headers: IncomingHttpHeaders): { relay: AnswerRelay; reserve: Reserve } {
    const { route, client, requestId, limits } = this.#request;
    const { pool, lease, policy, heldMs, guardMs } = this.#place;
    const { balancer } = pool;
    const asksForUsage = this.#asksForUsage;
    const source = { route, requestId, client, balancer, lease, policy, heldMs, asksForUsage, limits };
    const relay = new AnswerRelay(source, status, headers);
    const mayMove = (failure: Failure): boolean => this.#host.mayMove(this, failure);
    return { relay, reserve: new Reserve(relay, { asksForUsage, guardsStreams: guardMs !== undefined, mayMove }) };
  }

  /** A piece of an answer that the client does not see yet. @returns whether it was progress. */
  #keep(relay: AnswerRelay, piece: Buffer, nowMs: number): boolean {
    const reserve = this.#reserve as Reserve;
    if (reserve.reason === "body") {
      this.#open(relay);
      return relay.pass(piece, nowMs);
    }
    const isProgress = relay.pass(piece, nowMs);
    this.#take(reserve.piece(isProgress), relay, reserve);
    return isProgress;
  }

  /** Does as the reserve says. */
  #take(step: ReserveStep, relay: AnswerRelay, { reason }: Reserve): void {
    if (step === "open") {
      this.#open(relay);
    } else if (step === "drop") {
      this.#failWith(relay);
    } else if (step === "fallback") {
      this.#liftGuard();
      this.#moveDeadline(FALLBACK_MS);
    } else if (reason === "first_event") {
      this.#setGuard(relay);
    }
  }

  #setGuard(relay: AnswerRelay): void {
    const { guardMs, watchdog, clock } = this.#place;
    if (guardMs === undefined || this.#guard !== undefined) return;
    this.#guard = new Deadline(watchdog, () => this.#open(relay));
    this.#guard.set(clock.nowMs() + guardMs);
  }

  #liftGuard(): void {
    this.#guard?.lift();
    this.#guard = undefined;
  }

  #open(relay: AnswerRelay): void {
    if (relay.isOpen) return;
    this.#liftGuard();
    this.#reserve = undefined;
    this.#host.opens(this);
    relay.open();
  }

  /** The answer moved on. Until a stream shows its first token the wait for its first byte goes on, comments or not. */
  #progressed(relay: AnswerRelay, nowMs: number = this.#place.clock.nowMs()): void {
    if (relay.awaitsFirstToken) return;
    this.#answeredWell(relay);
    this.#moveDeadline(this.#place.idleMs, nowMs);
  }

  /** Tells it once, and only of an answer that is one: soon enough for an endpoint that is on trial. */
  #answeredWell({ status }: AnswerRelay): void {
    if (this.#isProven || status >= 300) return;
    this.#isProven = true;
    this.#monitor.succeeded(this.#place.lease);
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
    this.#finish("failed", "failed", { kind: "answered", outcome, tokens: relay.tokens }, cause);
  }

  /** The endpoint gave no answer, or none that was whole. */
  #failUnanswered(failure: Failure, cause: string): void {
    const relay = this.#relay;
    if (relay !== undefined && this.#reserve?.reason === "fallback") this.#failWith(relay);
    else this.#fail(failure, cause);
  }

  /** The endpoint answered with a failure. @param kept The answer itself, if it came to its end. */
  #failWith(relay: AnswerRelay, kept?: AnswerRelay): void {
    const { error, status } = relay;
    const code = error === undefined ? `${status}` : `an error in a stream, ${error.code ?? "without a code"}`;
    this.#fail(this.#reserve?.failure ?? "failed", `answered with ${code}`, kept);
  }

  #fail(failure: Failure, cause: string, answer?: AnswerRelay): void {
    const relay = this.#relay;
    const wasGuarded = relay?.isStream === true && relay.status < 300;
    const verdict = failure === "busy" ? failure : "failed";
    this.#finish("failed", verdict, { kind: "failed", failure, cause, answer, wasGuarded }, cause);
  }

  #failUnconnected(cause: string): void {
    const failure = this.#wasSentInVain ? "lost" : "unconnected";
    const end = { kind: "failed", failure, cause, answer: undefined, wasGuarded: false } as const;
    this.#finish("failed", "unconnected", end, cause);
  }

  #finish(kind: Outcome["kind"], verdict: Verdict | "unconnected", end: AttemptEnd, cause = ""): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const { watchdog, pool, lease, clock } = this.#place;
    watchdog.unwatch(this);
    this.#liftGuard();
    try {
      this.#report(verdict, cause);
      const { promptTokens, cachedTokens, outputTokens } = this.#tokens;
      pool.balancer.finish(lease, { kind, promptTokens, cachedTokens, outputTokens }, clock.nowMs());
    } finally {
      // Harmless after a clean end; in every other case it frees the endpoint at once.
      this.#controller?.abort(OVER);
      this.#host.ended(this, end);
    }
  }

  /**
   * Tells the monitor what became of the request. Before the lease is closed: what was learned of the endpoint must hold
   * for whoever its end lets go.
   */
  #report(verdict: Verdict | "unconnected", cause: string): void {
    const { lease } = this.#place;
    if (verdict === "failed") this.#monitor.failed(lease, cause);
    else if (verdict === "busy") this.#monitor.busy(lease, retryAfterOf(this.#relay?.retryAfter));
    else if (verdict === "unconnected") this.#monitor.connectFailed(lease, cause);
    else if (this.#isProven) return;
    else if (verdict === "succeeded") this.#monitor.succeeded(lease);
    else this.#monitor.neutral(lease);
  }

  /**
   * A stream that falls silent at an endpoint that refuses connections: an engine that was told to end finishes what it
   * has without such pauses, or leaves it where it is. Answers that show no tokens are silent anyway.
   */
  #isForsaken(nowMs: number): boolean {
    const sinceMs = this.#monitor.refusesSinceMs;
    if (sinceMs === undefined || this.#isPaused || nowMs - Math.max(sinceMs, this.#movedAtMs) < FORSAKEN_MS)
      return false;
    return this.#relay?.showsTokens === true && !this.#relay.awaitsFirstToken;
  }

  /** The endpoint gives no sign of life any more; who reads slowly gets what there is all the same. */
  get #isLifeless(): boolean {
    return this.#monitor.health.isLifeless && !this.#isPaused;
  }

  get #tokens(): AnswerTokens {
    return this.#relay?.tokens ?? NO_TOKENS;
  }

  #moveDeadline(limitMs: number | undefined, nowMs: number = this.#place.clock.nowMs()): void {
    this.#movedAtMs = nowMs;
    this.deadlineMs = limitMs === undefined ? Number.POSITIVE_INFINITY : nowMs + limitMs;
  }
}

/** An error comes with its head or soon after; nobody waits for it longer than that before another endpoint is asked. */
const FALLBACK_MS = 1_000;
/** Many times what the news of a closed connection takes. */
const STALE_MS = 1_000;
/** Longer than an engine that still works pauses between two tokens. */
const FORSAKEN_MS = 5_000;

const NO_TOKEN_CAME = ["upstream_timeout", "The endpoint generated nothing in time."] as const;
const FELL_SILENT = ["stalled", "The endpoint fell silent in the middle of its answer."] as const;

const OVER = new Error("the request is over");
