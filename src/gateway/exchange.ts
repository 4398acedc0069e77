import type { IncomingMessage, ServerResponse } from "node:http";
import type { Decision, Refused, RequestProfile, Routed, Ticket } from "../core/index.ts";
import type { ModelTarget, TicketHolder } from "../runtime/index.ts";
import { publishDecision } from "./admin/decision-channel.ts";
import type { AnswerTokens } from "./answer/answer-relay.ts";
import { Attempt, type AttemptEnd, type AttemptRequest } from "./attempt.ts";
import { ClientStream } from "./client/client-stream.ts";
import { type ClientWatcher, watchClient } from "./client/client-watch.ts";
import { errorBody } from "./client/error-answer.ts";
import type { ErrorCode, ErrorDetails } from "./client/errors.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { type HeaderList, ownHeaders, requestIdHeaders, requestIdOf } from "./headers.ts";
import { Hold } from "./hold.ts";
import type { RequestOutcome } from "./outcome.ts";
import { replaceModel } from "./request/body-edit.ts";
import { OutboundBody } from "./request/outbound-body.ts";
import { profileOf } from "./request/profile.ts";
import { readOpaque, renameOpaque } from "./request/read-opaque.ts";
import { type BodyProblem, type RequestFacts, readRequest } from "./request/read-request.ts";
import { declaresTooMuch, receiveBody } from "./request/receive-body.ts";
import { PASSTHROUGH, type Route } from "./routes.ts";

/** A request that was read, and where it may go. */
interface PreparedRequest {
  readonly target: ModelTarget;
  readonly profile: RequestProfile;
  readonly request: AttemptRequest;
}

/** One client request from its head to its one outcome: body, decision, attempts, answer. */
export class Exchange implements ClientWatcher, TicketHolder {
  readonly #parts: GatewayParts;
  readonly #route: Route;
  readonly #request: IncomingMessage;
  readonly #client: ClientStream;
  readonly #requestId: string;
  readonly #arrivedAtMs: number;
  #isClientGone = false;
  /** Undefined: it is not held at the balancer. */
  #hold: Hold | undefined;
  /** All its stays there together; undefined: it was never held. */
  #heldMs: number | undefined;
  #attempt: Attempt | undefined;
  #target: ModelTarget | undefined;
  #profile: RequestProfile | undefined;
  #body: OutboundBody | undefined;
  #endpointId: string | undefined;
  #attempts = 0;

  constructor(parts: GatewayParts, route: Route, request: IncomingMessage, response: ServerResponse) {
    this.#parts = parts;
    this.#route = route;
    this.#request = request;
    this.#client = new ClientStream(response, () => parts.runtime.isDraining);
    this.#requestId = requestIdOf(request.headers);
    this.#arrivedAtMs = parts.runtime.clock.nowMs();
    watchClient(response, this);
  }

  knock(): void {
    this.#client.knock(this.#attempt?.isBetweenEvents === true);
  }

  clientLeft(): void {
    this.#isClientGone = true;
    this.#attempt?.clientClosed();
    this.#hold?.leave();
  }

  get bodyBytes(): number {
    return this.#body?.keptBytes ?? 0;
  }

  released(decision: Routed | Refused): void {
    this.#hold?.release(decision);
  }

  async run(): Promise<void> {
    const { metrics } = this.#parts;
    metrics.requestBegan();
    try {
      await this.#serve();
    } catch (error) {
      // Whatever went wrong in here, this client must not wait for ever, and the others must not notice.
      this.#parts.runtime.log.error({ err: error, requestId: this.#requestId }, "request failed inside the balancer");
      if (this.#client.isCommitted) {
        this.#client.break();
        this.#end("internal_error");
      } else {
        this.#refuse("internal_error");
      }
    }
  }

  async #serve(): Promise<void> {
    const prepared = await this.#prepare();
    if (prepared !== undefined) await this.#tryEndpoints(prepared);
  }

  /**
   * Reads the request; undefined: it was answered. What was read, the parsed body above all, is gone when this returns
   * and takes no memory while the request is held and answered.
   */
  async #prepare(): Promise<PreparedRequest | undefined> {
    const { runtime, watchdog } = this.#parts;
    const { bodyBytes } = runtime.config.limits;
    if (awaitsLeave(this.#request) && !declaresTooMuch(this.#request, bodyBytes)) this.#client.invite();
    const limits = { bytes: bodyBytes, deadlineMs: this.#arrivedAtMs + BODY_MS };
    const body = await receiveBody(this.#request, limits, watchdog);
    switch (body.kind) {
      case "cut":
        return this.#end("client_closed");
      case "late":
        return this.#refuse("request_timeout");
      case "too_large":
        return this.#refuse("request_too_large", { limitBytes: bodyBytes });
      case "undecodable":
        return this.#refuse("invalid_body", { cause: body.cause });
    }
    const facts = this.#read(body.sent, body.decoded);
    if (!facts.isReadable) return this.#refuse("invalid_json", { cause: facts.message });
    const { directory } = runtime;
    const target = directory.find(facts.model);
    if (target === undefined) {
      return this.#refuse("model_not_found", { model: facts.model, knownModels: directory.names });
    }
    this.#target = target;
    const decoded = body.decoded ?? body.sent;
    const isAlias = target.model !== "" && target.model !== facts.model;
    this.#body = new OutboundBody(body.sent, decoded, isAlias ? this.#rename(decoded, target.model) : undefined);
    this.#profile = this.#profileOf(target, facts);
    return { target, profile: this.#profile, request: this.#attemptRequest(facts, this.#body) };
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
    const session = this.#parts.sessionKeys.read(this.#request.headers, facts.body);
    this.#parts.metrics.sessionKey(session.key === undefined ? session.reason : "found");
    return profileOf(this.#route, facts, target, session.key);
  }

  #attemptRequest(facts: RequestFacts, body: OutboundBody): AttemptRequest {
    return {
      route: this.#route,
      method: this.#request.method ?? "POST",
      path: this.#request.url ?? "/",
      headers: this.#request.headers,
      clientAddress: this.#request.socket.remoteAddress,
      requestId: this.#requestId,
      body,
      mayAskUsage: this.#route.canAskUsage && facts.isStreaming && facts.usageWish === "unspecified",
      client: this.#client,
    };
  }

  async #tryEndpoints({ target, profile, request }: PreparedRequest): Promise<void> {
    const { runtime, metrics } = this.#parts;
    const tried: string[] = [];
    let lost = 0;
    let lastCause: string | undefined;
    while (!this.#isClientGone) {
      let decision: Decision | undefined = target.pool.balancer.decide(profile, runtime.clock.nowMs(), tried, this);
      this.#publish(target, profile, decision);
      if (decision.kind === "held") {
        decision = await this.#waitThrough(decision.ticket, target);
        if (decision === undefined) break;
        this.#publish(target, profile, decision);
      }
      if (decision.kind === "refused") return this.#refuseDecision(decision, lastCause);
      this.#endpointId = decision.endpoint.id;
      this.#attempts++;
      const end = await this.#attemptAt(target, decision, request);
      switch (end.kind) {
        case "answered":
          return this.#end(end.outcome, end.tokens);
        case "client_closed":
          return this.#end("client_closed", end.tokens);
        case "no_answer":
          return this.#refuse("upstream_timeout");
        case "unreachable":
          lastCause = end.cause;
          tried.push(decision.endpoint.id);
          metrics.attemptFailed(target.pool.name, decision.endpoint.id);
          runtime.log.warn(
            { requestId: this.#requestId, endpoint: decision.endpoint.id, cause: end.cause },
            "endpoint could not be reached, trying another",
          );
          if (end.wasSent) lost++;
          if (lost >= MAX_LOST || tried.length >= runtime.config.attempts)
            return this.#refuse("upstream_error", { cause: spent(end.cause) });
      }
    }
    this.#end("client_closed");
  }

  /** Until the balancer lets the request go. Undefined: its client left before. */
  async #waitThrough(ticket: Ticket, { pool }: ModelTarget): Promise<Routed | Refused | undefined> {
    const { metrics, runtime } = this.#parts;
    const hold = new Hold(pool.balancer, ticket, runtime.clock);
    metrics.holds.began(pool.name);
    this.#hold = hold;
    await hold.ended;
    this.#hold = undefined;
    const { decision, elapsedMs } = hold;
    this.#heldMs = (this.#heldMs ?? 0) + elapsedMs;
    metrics.holds.ended(pool.name, decision === undefined ? "client_closed" : RESULTS[decision.kind], elapsedMs);
    return decision;
  }

  #publish({ pool }: ModelTarget, request: RequestProfile, decision: Decision): void {
    publishDecision({ requestId: this.#requestId, pool: pool.name, request, decision, heldMs: this.#heldMs });
  }

  #attemptAt({ pool }: ModelTarget, routed: Routed, request: AttemptRequest): Promise<AttemptEnd> {
    const { runtime, upstreams, watchdog } = this.#parts;
    const { firstByteMs, idleMs } = runtime.config.timeouts;
    const upstream = upstreams.get(pool, routed.endpoint.id);
    return new Promise((settle) => {
      const place = {
        pool,
        routed,
        heldMs: this.#heldMs,
        upstream,
        watchdog,
        clock: runtime.clock,
        firstByteMs,
        idleMs,
      };
      this.#attempt = new Attempt(request, place, settle);
      this.#attempt.start();
    });
  }

  #refuseDecision({ reason, retryAfterMs }: Refused, lastCause: string | undefined): void {
    switch (reason) {
      case "saturated":
        this.#refuse("overloaded", { retryAfterMs });
        break;
      case "model_not_served": {
        const knownModels = this.#parts.runtime.directory.names;
        this.#refuse("model_not_found", { model: this.#target?.model, knownModels });
        break;
      }
      case "exhausted":
        this.#refuse("upstream_error", { cause: spent(lastCause ?? "unknown") });
        break;
      case "unavailable":
      case "no_endpoint":
        this.#refuse("no_available_endpoint", { retryAfterMs });
    }
  }

  /** The balancer's own answer. */
  #refuse(code: ErrorCode, details: ErrorDetails = {}): undefined {
    const { headers, body, status } = errorBody(this.#route.dialect, code, { ...details, requestId: this.#requestId });
    this.#client.answer(status, [...Object.entries(headers).flat(), ...this.#servedBy()], body);
    this.#end(code);
  }

  #servedBy(): HeaderList {
    const { dialect } = this.#route;
    if (this.#endpointId === undefined || this.#target === undefined) {
      return requestIdHeaders(this.#requestId, dialect);
    }
    const policy = this.#target.pool.balancer.policyName;
    return ownHeaders({
      endpointId: this.#endpointId,
      policy,
      heldMs: this.#heldMs,
      requestId: this.#requestId,
      dialect,
    });
  }

  #end(outcome: RequestOutcome, tokens?: AnswerTokens): undefined {
    const { metrics, runtime } = this.#parts;
    const nowMs = runtime.clock.nowMs();
    const ended = {
      pool: this.#target?.pool.name,
      endpoint: this.#endpointId,
      route: this.#route.dialect,
      outcome,
      attempts: this.#attempts,
      arrivedAtMs: this.#arrivedAtMs,
      endedAtMs: nowMs,
      tokens,
    };
    metrics.requestEnded(ended);
    if (this.#profile !== undefined && tokens !== undefined) {
      runtime.recorder?.record(this.#profile, this.#arrivedAtMs, tokens);
    }
    if (!runtime.log.isLevelEnabled("debug")) return;
    const { pool, endpoint, route, attempts } = ended;
    const durationMs = Math.round(nowMs - this.#arrivedAtMs);
    const heldMs = this.#heldMs && Math.round(this.#heldMs);
    runtime.log.debug(
      { requestId: this.#requestId, pool, endpoint, route, outcome, attempts, heldMs, durationMs },
      "request ended",
    );
  }
}

/**
 * Endpoints that may lose the connection to one request. A lost connection may be the engine's death, and a second one
 * that of the request's own doing: a prompt that crashes engines must not go through all of them.
 */
const MAX_LOST = 2;

/** What a release makes of a hold. */
const RESULTS = { routed: "sent", refused: "refused" } as const;

/** What a body may take from the arrival of its head: long enough for the largest one over a poor line. */
const BODY_MS = 300_000;

/** HTTP/1.0 knows no such thing, so the header means nothing there. */
function awaitsLeave({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor > 0;
}

function spent(cause: string): string {
  return `No endpoint that was tried could be reached (last: ${cause}).`;
}
