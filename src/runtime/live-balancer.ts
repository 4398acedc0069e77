import type {
  Balancer,
  BalancerChange,
  Decision,
  Endpoint,
  Forecast,
  Lease,
  Member,
  Observation,
  Outcome,
  OutputLengths,
  Priority,
  PromptRatios,
  RefusalReason,
  Refused,
  Release,
  RequestProfile,
  Routed,
  SharedWork,
  Ticket,
} from "../core/index.ts";
import type { Clock } from "./clock.ts";

/** Who asked for a decision, and acts on it when it comes later. */
export interface TicketHolder {
  /** What it keeps in memory while its request is held. */
  readonly bodyBytes: number;
  /** The request that was held is decided: its lease is open from now on. Called once at most; must not throw. */
  released(decision: Routed | Refused): void;
}

/**
 * A pool's balancer in real time, and the only way to it. Every event may release held requests: each release reaches
 * its holder within the call, and one timer wakes the balancer when time alone releases somebody.
 */
export class LiveBalancer {
  readonly #balancer: Balancer;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer goes off; infinity: there is none. */
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(balancer: Balancer, clock: Clock) {
    this.#balancer = balancer;
    this.#clock = clock;
  }

  get policyName(): string {
    return this.#balancer.policyName;
  }

  get members(): readonly Member[] {
    return this.#balancer.members;
  }

  get outputLengths(): OutputLengths {
    return this.#balancer.outputLengths;
  }

  get promptRatios(): PromptRatios {
    return this.#balancer.promptRatios;
  }

  /** How many requests are held now. */
  get heldRequests(): number {
    return this.#balancer.heldRequests;
  }

  /** Bytes of their bodies. */
  get heldBytes(): number {
    return this.#balancer.heldBytes;
  }

  /** How many are held now, by their priority. */
  get heldByPriority(): Readonly<Record<Priority, number>> {
    return this.#balancer.heldByPriority;
  }

  /** How many decisions refused a request, by reason. */
  get refusals(): Readonly<Partial<Record<RefusalReason, number>>> {
    return this.#balancer.refusals;
  }

  /** Whether there is an endpoint that was not tried and may take the request, at once or later. */
  hasOther(request: RequestProfile, tried: readonly string[]): boolean {
    return this.#balancer.hasOther(request, tried);
  }

  explain(request: RequestProfile, nowMs: number, bodyBytes: number): Forecast {
    return this.#balancer.explain(request, nowMs, bodyBytes);
  }

  /** @param known What is known of some of the endpoints, before anything is sent to them. */
  setEndpoints(endpoints: readonly Endpoint[], known: readonly Observation[], nowMs: number): void {
    this.#passOn(this.#balancer.setEndpoints(endpoints, nowMs, known), nowMs);
  }

  reconfigure(change: BalancerChange, nowMs: number): void {
    this.#passOn(this.#balancer.reconfigure(change, nowMs), nowMs);
  }

  /**
   * @param holder Is told when the request is decided, if it is held first.
   * @param arrivedAtMs When the request came, if it was tried before; left out: now.
   */
  decide(
    request: RequestProfile,
    nowMs: number,
    tried: readonly string[],
    holder: TicketHolder,
    arrivedAtMs: number = nowMs,
  ): Decision {
    const decision = this.#balancer.decide(request, nowMs, tried, holder.bodyBytes, arrivedAtMs);
    if (decision.kind !== "held") this.#wakeInTime(nowMs);
    else if (this.#isClosed) {
      // Nobody wakes any more, and nobody else is held: the only one who is let go is this one.
      const [own] = this.#balancer.releaseAll("shutting_down", nowMs);
      return (own as Release).decision;
    } else {
      decision.ticket.holder = holder;
      this.#passOn(decision.displaced, nowMs);
    }
    return decision;
  }

  /** Gives up a held request: its holder is not told any more. After its release it does nothing. */
  leave(ticket: Ticket, nowMs: number): void {
    const releases = this.#balancer.leave(ticket, nowMs);
    ticket.holder = undefined;
    this.#passOn(releases, nowMs);
  }

  firstToken(lease: Lease, nowMs: number): void {
    this.#passOn(this.#balancer.firstToken(lease, nowMs), nowMs);
  }

  progress(lease: Lease, tokens: number, nowMs: number): void {
    this.#balancer.progress(lease, tokens, nowMs);
  }

  finish(lease: Lease, outcome: Outcome, nowMs: number): void {
    this.#passOn(this.#balancer.finish(lease, outcome, nowMs), nowMs);
  }

  observe(observation: Observation, nowMs: number): void {
    this.#passOn(this.#balancer.observe(observation, nowMs), nowMs);
  }

  tick(nowMs: number): void {
    this.#passOn(this.#balancer.tick(nowMs), nowMs);
  }

  /** What this balancer tells others in front of the same endpoints, of all of them. */
  share(nowMs: number): SharedWork {
    return this.#balancer.share(nowMs);
  }

  /** As `share`, of what changed since; undefined: nothing did. */
  shareChanges(nowMs: number): SharedWork | undefined {
    return this.#balancer.shareChanges(nowMs);
  }

  /** What the balancer `from` said of its work, in place of what it said before; undefined: it is gone. */
  adopt(from: string, work: SharedWork | undefined, nowMs: number): void {
    this.#passOn(this.#balancer.adopt(from, work, nowMs), nowMs);
  }

  /** Everybody who is held is refused: what holds them is to end. */
  releaseAll(reason: RefusalReason, nowMs: number): void {
    this.#passOn(this.#balancer.releaseAll(reason, nowMs), nowMs);
  }

  /** Holds nobody any more, and wakes no more. Answers that run go on. */
  close(): void {
    this.#isClosed = true;
    this.#disarm();
    this.releaseAll("shutting_down", this.#clock.nowMs());
  }

  #passOn(releases: readonly Release[], nowMs: number): void {
    for (const { ticket, decision } of releases) {
      // `decide` is the only one to make tickets, and gave each its holder. A ticket that is done with keeps no body alive.
      const holder = ticket.holder as TicketHolder;
      ticket.holder = undefined;
      holder.released(decision);
    }
    this.#wakeInTime(nowMs);
  }

  /** A timer that goes off too early costs one look; only one that would be late is set anew. */
  #wakeInTime(nowMs: number): void {
    if (this.#isClosed || this.#balancer.heldRequests === 0) return;
    const wakeMs = this.#balancer.nextWakeMs(nowMs);
    if (wakeMs === undefined || wakeMs >= this.#wakeAtMs) return;
    this.#disarm();
    this.#wakeAtMs = wakeMs;
    const waitMs = Math.max(MIN_WAIT_MS, Math.ceil(wakeMs - nowMs) + EARLY_MS);
    this.#timer = setTimeout(() => this.#wake(), Math.min(MAX_WAIT_MS, waitMs)).unref();
  }

  #wake(): void {
    this.#disarm();
    this.tick(this.#clock.nowMs());
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wakeAtMs = Number.POSITIVE_INFINITY;
  }
}

/** Node's timers may go off this much early. */
const EARLY_MS = 1;
/** Who could go by now has just gone, so that what is due already can wait: the timer never spins. */
const MIN_WAIT_MS = 5;
/** Node's timers take no longer one; who wakes early looks again. */
const MAX_WAIT_MS = 2 ** 31 - 1;
