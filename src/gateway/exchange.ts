import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestProfile } from "../core/index.ts";
import type { ModelTarget } from "../runtime/index.ts";
import type { Caller } from "./access/access.ts";
import { TokenCharge } from "./access/token-charge.ts";
import type { AnswerTokens } from "./answer/answer-relay.ts";
import type { AttemptRequest } from "./attempt-terms.ts";
import { ClientStream } from "./client/client-stream.ts";
import { type ClientWatcher, watchClient } from "./client/client-watch.ts";
import { errorBody, errorEvent } from "./client/error-answer.ts";
import type { ErrorCode, ErrorDetails } from "./client/errors.ts";
import { Heartbeat } from "./client/heartbeat.ts";
import { Delivery, type DeliveryHost, type PreparedRequest } from "./failover/delivery.ts";
import type { DeliveryEnd } from "./failover/delivery-end.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { earlyHead, type HeaderList, ownHeaders, requestIdHeaders, requestIdOf } from "./headers.ts";
import type { RequestOutcome } from "./outcome.ts";
import { replaceModel } from "./request/body-edit.ts";
import type { BufferShare } from "./request/buffer-budget.ts";
import { hasRival } from "./request/json-object.ts";
import { OutboundBody } from "./request/outbound-body.ts";
import { profileOf } from "./request/profile.ts";
import { readOpaque, renameOpaque } from "./request/read-opaque.ts";
import { type BodyProblem, type RequestFacts, readRequest } from "./request/read-request.ts";
import { declaresTooMuch, receiveBody } from "./request/receive-body.ts";
import { senderOf } from "./request/sender.ts";
import { PASSTHROUGH, type Route } from "./routes.ts";

/** One client request from its head to its one outcome: it is read, delivered, and answered. */
export class Exchange implements ClientWatcher, DeliveryHost {
  readonly #parts: GatewayParts;
  readonly #route: Route;
  readonly #request: IncomingMessage;
  readonly #caller: Caller;
  readonly #charge: TokenCharge;
  readonly #client: ClientStream;
  readonly #requestId: string;
  readonly #arrivedAtMs: number;
  /** What the request's bytes are counted in. */
  readonly #buffered: BufferShare;
  #isClientGone = false;
  /** Its one outcome is counted. */
  #isEnded = false;
  #target: ModelTarget | undefined;
  #profile: RequestProfile | undefined;
  /** Undefined: it was not read yet, or is not one that can be served. */
  #delivery: Delivery | undefined;
  /** Undefined: nothing is put into its silences. */
  #heartbeat: Heartbeat | undefined;

  constructor(parts: GatewayParts, route: Route, request: IncomingMessage, response: ServerResponse, caller: Caller) {
    this.#parts = parts;
    this.#route = route;
    this.#request = request;
    this.#caller = caller;
    this.#charge = new TokenCharge(caller);
    this.#client = new ClientStream(response, () => parts.runtime.isDraining);
    this.#requestId = requestIdOf(request.headers);
    this.#arrivedAtMs = parts.runtime.clock.nowMs();
    this.#buffered = parts.buffers.open();
    watchClient(response, this);
  }

  knock(): void {
    this.#client.knock(this.#delivery?.isBetweenEvents === true);
  }

  clientLeft(): void {
    this.#isClientGone = true;
    this.#delivery?.clientLeft();
  }

  /** Reads the request and, unless it was answered by that, sends it on its way. */
  async run(): Promise<void> {
    this.#parts.metrics.requestBegan();
    try {
      const prepared = await this.#prepare();
      if (prepared !== undefined) this.#deliver(prepared);
    } catch (error) {
      this.broke(error);
    }
  }

  delivered(end: DeliveryEnd): void {
    this.#heartbeat?.stop();
    this.#close(end);
  }

  /** Whatever went wrong in here, this client must not wait for ever, and the others must not notice. */
  broke(error: unknown): void {
    this.#heartbeat?.stop();
    this.#buffered.release();
    this.#parts.runtime.log.error({ err: error, requestId: this.#requestId }, "request failed inside the balancer");
    // It had its answer by then.
    if (this.#isEnded) return;
    if (this.#client.isCommitted) {
      this.#client.break();
      this.#end("internal_error");
    } else {
      this.#refuse("internal_error");
    }
  }

  #deliver(prepared: PreparedRequest): void {
    if (this.#isClientGone) {
      this.#end("client_closed");
      return;
    }
    this.#delivery = new Delivery(this.#parts, prepared, this);
    this.#heartbeat = this.#heartbeatOf(prepared.profile, this.#delivery);
    this.#delivery.start();
  }

  #close(end: DeliveryEnd): undefined {
    const { idleMs } = this.#parts.runtime.config.timeouts;
    switch (end.kind) {
      case "answered":
        if (idleMs !== undefined) this.#client.dropIfStalled(idleMs);
        return this.#end(end.outcome, end.tokens);
      case "client_closed":
        return this.#end("client_closed", end.tokens);
      case "refused":
        return this.#refuse(end.code, end.details, end.outcome);
    }
  }

  /** Undefined: nothing is to be put into silent streams, or this will be none. */
  #heartbeatOf({ isStreaming }: RequestProfile, delivery: Delivery): Heartbeat | undefined {
    const { runtime, watchdog } = this.#parts;
    const { heartbeatMs, opensEarly } = runtime.config.streams;
    if (heartbeatMs === undefined || !isStreaming) return undefined;
    return new Heartbeat(this.#client, {
      everyMs: heartbeatMs,
      earlyHead: opensEarly ? earlyHead(this.#requestId, this.#route.dialect) : undefined,
      isBetweenEvents: () => delivery.isBetweenEvents,
      clock: runtime.clock,
      watchdog,
    });
  }

  /**
   * Reads the request; undefined: it was answered. What was read, the parsed body above all, is gone when this returns
   * and takes no memory while the request is held and answered.
   */
  async #prepare(): Promise<PreparedRequest | undefined> {
    const { runtime, watchdog } = this.#parts;
    const { limits, timeouts } = runtime.config;
    const limitBytes = limits.bodyBytes;
    if (awaitsLeave(this.#request) && !declaresTooMuch(this.#request, limitBytes)) this.#client.invite();
    const bounds = {
      bytes: limitBytes,
      arrivedAtMs: this.#arrivedAtMs,
      withinMs: timeouts.clientBodyMs,
      share: this.#buffered,
    };
    const body = await receiveBody(this.#request, bounds, watchdog);
    switch (body.kind) {
      case "cut":
        return this.#end("client_closed");
      case "late":
        return this.#refuse("request_timeout");
      case "malformed":
        return this.#refuse("malformed_request");
      case "too_large":
        return this.#refuse("request_too_large", { limitBytes });
      case "too_much_buffered":
        return this.#refuseTooMuchBuffered();
      case "undecodable":
        return this.#refuse("invalid_body", { cause: body.cause });
    }
    if (body.decoded !== undefined && body.decoded.length >= LONG_BODY_BYTES) {
      await this.#parts.turns.next();
      if (this.#isClientGone) return this.#end("client_closed");
    }
    const facts = this.#read(body.sent, body.decoded);
    if (!facts.isReadable) return this.#refuse("invalid_json", { cause: facts.message });
    const { model } = facts;
    // Some engines read the names of fields in any case: what could be two models is none that is known.
    const isClear = !hasRival(facts.body, "model");
    if (!this.#caller.mayUse(isClear ? model : undefined)) return this.#refuse("forbidden_model", { model });
    const { directory } = runtime;
    const target = directory.find(model);
    if (target === undefined) {
      return this.#refuse("model_not_found", { model, knownModels: directory.names });
    }
    this.#target = target;
    const decoded = body.decoded ?? body.sent;
    const isAlias = target.model !== "" && target.model !== facts.model;
    const renamed = isAlias ? this.#rename(decoded, target.model) : undefined;
    // The client left it open whether usage is reported, so the balancer may ask for itself.
    const mayAskUsage = this.#route.canAskUsage && facts.isStreaming && facts.usageWish === "unspecified";
    const outbound = new OutboundBody({ sent: body.sent, decoded, renamed, mayAskUsage }, this.#buffered);
    if (!outbound.isCounted) return this.#refuseTooMuchBuffered();
    const profile = this.#profileOf(target, facts);
    this.#profile = profile;
    const charge = this.#charge.take(profile);
    if (!charge.isTaken) return this.#refuseOverLimit(charge.waitMs);
    const request = this.#attemptRequest(outbound);
    return { target, profile, request, arrivedAtMs: this.#arrivedAtMs };
  }

  #refuseTooMuchBuffered(): undefined {
    this.#refuse("too_much_buffered", { retryAfterMs: BUFFERED_RETRY_MS });
  }

  #refuseOverLimit(retryAfterMs: number): undefined {
    const cause = "This key has used the tokens it may use in a minute.";
    this.#refuse("rate_limited", { cause, retryAfterMs, limits: this.#caller.limitHeaders() });
  }

  #read(sent: Buffer, decoded: Buffer | undefined): RequestFacts | BodyProblem {
    const { dialect } = this.#route;
    if (decoded === undefined) return readOpaque(undefined, sent);
    if (dialect === "passthrough") return readOpaque(this.#request.headers["content-type"], decoded);
    return readRequest(dialect, decoded);
  }

  #rename(body: Buffer, model: string): Buffer {
    return this.#route === PASSTHROUGH
      ? renameOpaque(this.#request.headers["content-type"], body, model)
      : replaceModel(body, model);
  }

  #profileOf(target: ModelTarget, facts: RequestFacts): RequestProfile {
    const { senders, metrics } = this.#parts;
    const { sender, sessionKey } = senderOf(this.#request.headers, facts.body, senders, this.#caller);
    metrics.sessionKey(sessionKey);
    return profileOf(this.#route, facts, target, sender);
  }

  #attemptRequest(body: OutboundBody): AttemptRequest {
    const { method = "POST" } = this.#request;
    return {
      route: this.#route,
      method,
      path: this.#request.url ?? "/",
      headers: this.#request.headers,
      clientAddress: this.#request.socket.remoteAddress,
      requestId: this.#requestId,
      body,
      isRepeatable: this.#route !== PASSTHROUGH || REPEATABLE_METHODS.has(method),
      client: this.#client,
      limits: this.#caller.limitHeaders(),
    };
  }

  /**
   * The balancer's own answer, or an event where a stream was opened before there was one.
   * @param outcome How the request is counted, if not by what its client is told.
   */
  #refuse(code: ErrorCode, details: ErrorDetails = {}, outcome: RequestOutcome = code): undefined {
    const knownModels = details.knownModels?.filter((name) => this.#caller.mayUse(name)) ?? [];
    const told = { ...details, knownModels, requestId: this.#requestId };
    if (this.#client.isCommitted) {
      this.#client.break(errorEvent(this.#route.dialect, code, told));
    } else {
      const { headers, body, status } = errorBody(this.#route.dialect, code, told);
      this.#client.answer(status, [...Object.entries(headers).flat(), ...this.#servedBy()], body);
    }
    this.#end(outcome);
  }

  #servedBy(): HeaderList {
    const { dialect } = this.#route;
    const endpointId = this.#delivery?.endpointId;
    if (endpointId === undefined || this.#target === undefined) return requestIdHeaders(this.#requestId, dialect);
    return ownHeaders({
      endpointId,
      policy: this.#target.pool.balancer.policyName,
      heldMs: this.#delivery?.heldMs,
      requestId: this.#requestId,
      dialect,
    });
  }

  #end(outcome: RequestOutcome, tokens?: AnswerTokens): undefined {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#buffered.release();
    const { metrics, runtime } = this.#parts;
    const nowMs = runtime.clock.nowMs();
    const ended = {
      pool: this.#target?.pool.name,
      endpoint: this.#delivery?.endpointId,
      route: this.#route.dialect,
      outcome,
      attempts: this.#delivery?.attempts ?? 0,
      arrivedAtMs: this.#arrivedAtMs,
      endedAtMs: nowMs,
      tokens,
    };
    metrics.requestEnded(ended);
    this.#charge.settle(outcome, tokens);
    if (this.#profile !== undefined && tokens !== undefined) {
      runtime.recorder?.record(this.#profile, this.#arrivedAtMs, tokens);
    }
    if (!runtime.log.isLevelEnabled("debug")) return;
    const { pool, endpoint, route, attempts } = ended;
    const durationMs = Math.round(nowMs - this.#arrivedAtMs);
    const heldMs = this.#delivery?.heldMs && Math.round(this.#delivery.heldMs);
    runtime.log.debug(
      { requestId: this.#requestId, pool, endpoint, route, outcome, attempts, heldMs, durationMs },
      "request ended",
    );
  }
}

/** Of the methods of `passthrough` paths, of which nothing else is known (RFC 9110, 9.2.2). */
const REPEATABLE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/**
 * Reading and hashing takes 3 us per kB, twice that for text that is not English (docs/performance.md): from a fifth of a
 * millisecond on, streams are not to wait for two at once.
 */
const LONG_BODY_BYTES = 64 * 1024;

/** What is buffered goes to its endpoints within moments, or is held and would not. */
const BUFFERED_RETRY_MS = 1_000;

/** HTTP/1.0 knows no such thing, so the header means nothing there. */
function awaitsLeave({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor > 0;
}
