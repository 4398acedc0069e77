import type { Decision, Refused, RequestProfile, Routed, Ticket } from "../../core/index.ts";
import type { ModelTarget, TicketHolder } from "../../runtime/index.ts";
import { publishDecision } from "../admin/decision-channel.ts";
import type { HedgeResult } from "../admin/failover-metrics.ts";
import type { AnswerRelay } from "../answer/answer-relay.ts";
import { Attempt } from "../attempt.ts";
import type { AttemptHost, AttemptRequest, FailedAttempt } from "../attempt-terms.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { ATTEMPT_HEADER } from "../headers.ts";
import { Hold } from "../hold.ts";
import { Deadline } from "../watchdog.ts";
import { type DeliveryEnd, REFUSALS, refused } from "./delivery-end.ts";
import type { Failure } from "./failure.ts";
import { Race, type RaceEnd, type RaceHost } from "./race.ts";
import { Retries } from "./retries.ts";

/** A request that was read, and where it may go. */
export interface PreparedRequest {
  readonly target: ModelTarget;
  readonly profile: RequestProfile;
  readonly request: AttemptRequest;
  readonly arrivedAtMs: number;
}

/** For whom a request is delivered. */
export interface DeliveryHost {
  /** What became of it; told once, unless it broke. */
  delivered(end: DeliveryEnd): void;
  /** The balancer failed over it. */
  broke(error: unknown): void;
}

/**
 * Brings one request to an endpoint that answers it: through decisions, holds and attempts to its end. Nothing awaits
 * that end: what a function that waits keeps is most of what a stream would take here, and streams last for hours.
 */
export class Delivery implements TicketHolder, RaceHost {
  readonly #parts: GatewayParts;
  readonly #prepared: PreparedRequest;
  readonly #host: DeliveryHost;
  readonly #profile: RequestProfile;
  readonly #retries: Retries;
  /** Undefined: the request may take as long as it takes. */
  #total: Deadline | undefined;
  /** It came from a balancer that sends it elsewhere itself if it fails here. */
  readonly #isNested: boolean;
  #isClientGone = false;
  #isOverTime = false;
  /** Undefined: it is not held at the balancer. */
  #hold: Hold | undefined;
  /** All its stays there together; undefined: it was never held. */
  #heldMs: number | undefined;
  #race: Race | undefined;
  #wasHedged = false;
  #tried: readonly string[] = [];
  /** What the client gets if no endpoint does better: the last that one answered. */
  #fallback: AnswerRelay | undefined;
  #lastFailure: FailedAttempt | undefined;
  #endpointId: string | undefined;

  constructor(parts: GatewayParts, prepared: PreparedRequest, host: DeliveryHost) {
    const { runtime, budgets } = parts;
    const { target, request, arrivedAtMs } = prepared;
    this.#parts = parts;
    this.#prepared = prepared;
    this.#host = host;
    this.#profile = withinTotal(prepared.profile, runtime.config.timeouts.totalMs);
    this.#isNested = request.headers[ATTEMPT_HEADER] !== undefined;
    this.#retries = new Retries({
      limits: runtime.config.failover,
      budget: budgets.of(target.pool).retries,
      patienceEndsAtMs: arrivedAtMs + (this.#profile.patienceMs ?? Number.POSITIVE_INFINITY),
      isNested: this.#isNested,
      isRepeatable: request.isRepeatable,
    });
  }

  /** Whose answer the client has, or who was tried last; undefined: it was sent nowhere. */
  get endpointId(): string | undefined {
    return this.#endpointId;
  }

  get attempts(): number {
    return this.#retries.begun;
  }

  get heldMs(): number | undefined {
    return this.#heldMs;
  }

  /** Whether the client is between two events of a stream. */
  get isBetweenEvents(): boolean {
    return this.#race?.isBetweenEvents === true;
  }

  get bodyBytes(): number {
    return this.#prepared.request.body.keptBytes;
  }

  clientLeft(): void {
    this.#isClientGone = true;
    this.#race?.clientClosed();
    this.#hold?.leave();
  }

  released(decision: Routed | Refused): void {
    this.#hold?.release(decision);
  }

  /** Begins; the host is told of the end. */
  start(): void {
    const { runtime, watchdog } = this.#parts;
    const { totalMs } = runtime.config.timeouts;
    if (totalMs !== undefined) {
      this.#total = new Deadline(watchdog, () => this.#timeOut());
      this.#total.set(this.#prepared.arrivedAtMs + totalMs);
    }
    this.#safely(() => this.#round());
  }

  ended(end: RaceEnd): void {
    this.#race = undefined;
    this.#safely(() => this.#goOn(end));
  }

  broke(error: unknown): void {
    this.#total?.lift();
    this.#host.broke(error);
    try {
      this.#race?.abandon();
    } catch (again) {
      // The client has its answer, and whoever called this must not suffer for it.
      const { requestId } = this.#prepared.request;
      this.#parts.runtime.log.error({ err: again, requestId }, "a request that failed could not be ended either");
    }
  }

  /** A step may be taken from anywhere: whatever goes wrong in it is this request's matter alone. */
  #safely(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.broke(error);
    }
  }

  /** One decision, and what comes of it. */
  #round(): void {
    if (this.#isClientGone) {
      this.#leave();
      return;
    }
    const decision = this.#ask(this.#profile, this.#parts.runtime.clock.nowMs());
    this.#publish(decision);
    if (decision.kind !== "held") this.#act(decision);
    else void this.#waitThrough(decision.ticket).catch((error) => this.broke(error));
  }

  #act(decision: Routed | Refused): void {
    if (decision.kind === "routed") this.#runRace(decision);
    else this.#end(this.#refusedBy(decision));
  }

  /** After a race. */
  #goOn(end: RaceEnd): void {
    if (end.kind === "timed_out") this.#end(refused("upstream_timeout", {}, "timed_out"));
    else if (end.kind !== "failed") this.#end(end);
    else if (end.mayRetry || this.#isClientGone) this.#round();
    else this.#end(this.#giveUp());
  }

  /** It goes nowhere any more. */
  #leave(): void {
    this.#end(this.#isOverTime ? refused("queue_timeout") : { kind: "client_closed", tokens: undefined });
  }

  #end(end: DeliveryEnd): void {
    this.#total?.lift();
    this.#host.delivered(end);
  }

  attempt(routed: Routed, host: AttemptHost): Attempt {
    try {
      return this.#attempt(routed, host);
    } catch (error) {
      // Until there is an attempt nobody else would close its lease.
      const { balancer } = this.#prepared.target.pool;
      balancer.finish(routed.lease, { kind: "aborted" }, this.#parts.runtime.clock.nowMs());
      throw error;
    }
  }

  findSecond(): Routed | undefined {
    const { runtime, budgets } = this.#parts;
    const { target } = this.#prepared;
    const { hedging } = runtime.config;
    const { hedges } = budgets.of(target.pool);
    const nowMs = runtime.clock.nowMs();
    if (hedging === undefined || !this.#retries.mayBegin(nowMs) || !this.#hasOther) return undefined;
    if (!hedges.covers({ ratio: hedging.budgetRatio, minPerSecond: 0 }, nowMs)) return undefined;
    // Nobody waits for a place in which to be second.
    const decision = this.#ask({ ...this.#profile, patienceMs: 0 }, nowMs);
    if (decision.kind !== "routed") return undefined;
    this.#publish(decision);
    hedges.withdraw(nowMs);
    this.#wasHedged = true;
    return decision;
  }

  mayRetry(failure: Failure): boolean {
    const { runtime, metrics } = this.#parts;
    const pool = this.#prepared.target.pool.name;
    const denial = this.#hasOther ? this.#retries.ask(failure, runtime.clock.nowMs()) : "no_endpoint";
    if (denial === undefined) metrics.failover.retried(pool, failure);
    else metrics.failover.retryDenied(pool, denial);
    return denial === undefined;
  }

  opened({ endpointId }: Attempt): void {
    this.#endpointId = endpointId;
    // Nothing is sent again from here on.
    this.#prepared.request.body.release();
  }

  attemptFailed({ endpointId }: Attempt, end: FailedAttempt): void {
    const { runtime, metrics } = this.#parts;
    const { failure, cause, answer, wasGuarded } = end;
    const pool = this.#prepared.target.pool.name;
    this.#retries.failed(failure);
    this.#lastFailure = end;
    this.#fallback = answer ?? this.#fallback;
    metrics.failover.attemptFailed(pool, endpointId, failure);
    if (wasGuarded) metrics.failover.guarded(pool);
    const { requestId } = this.#prepared.request;
    // Busy endpoints are an everyday matter, and many requests at a time hear of them.
    const level = failure === "busy" ? "debug" : "warn";
    runtime.log[level]({ requestId, endpoint: endpointId, failure, cause }, "an attempt failed unseen by the client");
  }

  hedgeEnded(result: HedgeResult): void {
    this.#parts.metrics.failover.hedgeEnded(this.#prepared.target.pool.name, result);
  }

  #attempt(routed: Routed, host: AttemptHost): Attempt {
    const { runtime, upstreams, watchdog, budgets } = this.#parts;
    const { pool } = this.#prepared.target;
    const { timeouts, failover } = runtime.config;
    const nowMs = runtime.clock.nowMs();
    if (this.attempts === 0) budgets.of(pool).hedges.deposit(nowMs);
    this.#retries.begin(nowMs);
    const { lease } = routed;
    this.#tried = this.#tried.concat(lease.endpointId);
    this.#endpointId = lease.endpointId;
    const place = {
      pool,
      lease,
      policy: pool.balancer.policyName,
      heldMs: this.#heldMs,
      upstream: upstreams.get(pool, lease.endpointId),
      watchdog,
      clock: runtime.clock,
      firstByteMs: timeouts.firstByteMs,
      idleMs: timeouts.idleMs,
      guardMs: this.#guardMs,
      number: failover.attempts > 1 ? this.attempts : undefined,
    };
    return new Attempt(this.#prepared.request, place, host);
  }

  #ask(profile: RequestProfile, nowMs: number): Decision {
    const { target, arrivedAtMs } = this.#prepared;
    return target.pool.balancer.decide(profile, nowMs, this.#tried, this, arrivedAtMs);
  }

  /** Until the balancer lets the request go, its client leaves or its time is over. */
  async #waitThrough(ticket: Ticket): Promise<void> {
    const { metrics, runtime } = this.#parts;
    const { pool } = this.#prepared.target;
    const hold = new Hold(pool.balancer, ticket, runtime.clock);
    metrics.holds.began(pool.name);
    this.#hold = hold;
    await hold.ended;
    this.#hold = undefined;
    const { decision, elapsedMs } = hold;
    this.#heldMs = (this.#heldMs ?? 0) + elapsedMs;
    const withoutDecision = this.#isOverTime ? "refused" : "client_closed";
    metrics.holds.ended(pool.name, decision === undefined ? withoutDecision : RESULTS[decision.kind], elapsedMs);
    if (decision === undefined) {
      this.#leave();
      return;
    }
    this.#publish(decision);
    this.#act(decision);
  }

  #runRace(routed: Routed): void {
    const { runtime, watchdog } = this.#parts;
    this.#race = new Race(this, { hedgeAfterMs: this.#hedgeAfterMs, clock: runtime.clock, watchdog });
    this.#race.start(routed);
  }

  /** Undefined: the request is not to be at two endpoints at a time. */
  get #hedgeAfterMs(): number | undefined {
    if (this.#wasHedged || this.#isNested || !this.#prepared.request.isRepeatable) return undefined;
    return this.#parts.runtime.config.hedging?.afterMs;
  }

  /** A stream's head that has gone out would end a race, so where there may be one it waits for its first event. */
  get #guardMs(): number | undefined {
    const { failover, hedging } = this.#parts.runtime.config;
    const waitsForEvent = hedging !== undefined && failover.guardMs !== undefined && !this.#isNested;
    return waitsForEvent ? Number.POSITIVE_INFINITY : failover.guardMs;
  }

  /** Whether there is an endpoint that was not tried and may take the request, at once or later. */
  get #hasOther(): boolean {
    return this.#prepared.target.pool.balancer.hasOther(this.#profile, this.#tried);
  }

  #timeOut(): void {
    this.#isOverTime = true;
    this.#race?.timedOut();
    this.#hold?.leave();
  }

  #publish(decision: Decision): void {
    const { target, request } = this.#prepared;
    publishDecision({
      requestId: request.requestId,
      pool: target.pool.name,
      request: this.#profile,
      decision,
      heldMs: this.#heldMs,
    });
  }

  #refusedBy({ reason, retryAfterMs }: Refused): DeliveryEnd {
    // What an endpoint answered says more than that no other one may be asked.
    if (this.#lastFailure !== undefined && (this.#fallback !== undefined || reason === "exhausted")) {
      return this.#giveUp();
    }
    const code = REFUSALS[reason];
    if (code !== "model_not_found") return refused(code, { retryAfterMs });
    const { target } = this.#prepared;
    return refused(code, { model: target.model, knownModels: this.#parts.runtime.directory.names });
  }

  /** No other endpoint is asked: the client gets the last answer there was or, if there was none, is told why. */
  #giveUp(): DeliveryEnd {
    const answer = this.#fallback;
    if (answer !== undefined) {
      this.#endpointId = answer.endpointId;
      const { outcome, tokens } = answer;
      answer.close();
      return { kind: "answered", outcome, tokens };
    }
    if (this.#lastFailure?.failure === "slow") return refused("upstream_timeout");
    const cause = `No endpoint that was tried gave an answer (last: ${this.#lastFailure?.cause}).`;
    return refused("upstream_error", { cause });
  }
}

/** Nobody is held, or tried elsewhere, for longer than a request may take. */
function withinTotal(profile: RequestProfile, totalMs: number | undefined): RequestProfile {
  if (totalMs === undefined) return profile;
  return { ...profile, patienceMs: Math.min(totalMs, profile.patienceMs ?? totalMs) };
}

/** What a release makes of a hold. */
const RESULTS = { routed: "sent", refused: "refused" } as const;
