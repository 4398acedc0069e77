import { costOf } from "./cost.ts";
import type { Outcome, RefusalReason, Refused, Routed } from "./decision.ts";
import { DrainMeter } from "./drain-meter.ts";
import { Flight, firstTokenDueMs } from "./flight.ts";
import { Grounds, RefusedOn, RoutedOn } from "./grounds.ts";
import type { Ledger } from "./ledger.ts";
import type { Member } from "./member.ts";
import type { Candidate, Policy } from "./policy.ts";
import type { Pool } from "./pool.ts";
import type { Random } from "./random.ts";
import type { Sharing } from "./sharing.ts";
import { SlotList } from "./slot-list.ts";
import { type Ramp, rampMoved } from "./slow-start.ts";
import type { Ticket } from "./ticket.ts";

/** A request that the policy looked at. */
export interface Weighed {
  /** Undefined: no endpoint can take it. */
  readonly chosen: Member | undefined;
  /** Those that could; empty: none. */
  readonly candidates: readonly Candidate[];
  readonly grounds: Grounds;
  /** Those of the endpoints that are held to a smaller share; undefined: nobody is. */
  readonly ramp: Ramp<Member> | undefined;
}

/** Asks the policy, and carries out what was decided: the lease and the flight open in one step. */
export class Router {
  #policyName: string;
  #policy: Policy;
  readonly #pool: Pool;
  readonly #ledger: Ledger;
  readonly #sharing: Sharing;
  readonly #drain = new DrainMeter();
  readonly #refusals: Partial<Record<RefusalReason, number>> = {};
  /** Flights whose tokens are not seen. */
  readonly unseen: SlotList<Flight> = new SlotList<Flight>();

  constructor(policyName: string, policy: Policy, pool: Pool, ledger: Ledger, sharing: Sharing) {
    this.#policyName = policyName;
    this.#policy = policy;
    this.#pool = pool;
    this.#ledger = ledger;
    this.#sharing = sharing;
  }

  get policyName(): string {
    return this.#policyName;
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** How often what was refused. */
  get refusals(): Readonly<Partial<Record<RefusalReason, number>>> {
    return this.#refusals;
  }

  /** Another policy from now on; of what the one before kept for itself, nothing is left. */
  use(policyName: string, policy: Policy): void {
    this.#policyName = policyName;
    this.#policy = policy;
  }

  /**
   * What the policy would choose, with nothing changed.
   * @param isWaiting Somebody has to wait; left out: if anybody is held.
   */
  weigh(ticket: Ticket, random: Random, nowMs: number, isWaiting?: boolean): Weighed {
    const { request, tried, arrivedAtMs, urgency, place } = ticket;
    const { members, full, excluded, ramp } = this.#pool.eligible(request, tried, this.#roomRule(), nowMs, isWaiting);
    const context = { nowMs, random, arrivedAtMs, urgency, place };
    const candidates = members.length > 0 ? members : this.#waitedFor(full);
    if (isNonEmpty(candidates)) {
      const choice = this.policy.choose(request, candidates, context);
      const grounds = new Grounds(this.policyName, choice.reason, excluded, choice);
      // Candidates are the pool's own members.
      return { chosen: choice.chosen as Member, candidates, grounds, ramp };
    }
    const grounds = isNonEmpty(full)
      ? new Grounds(this.policyName, "no endpoint has room", excluded, this.policy.choose(request, full, context))
      : new Grounds(this.policyName, "no endpoint can take it", excluded);
    return { chosen: undefined, candidates: [], grounds, ramp };
  }

  /** The request goes to `chosen`. */
  route({ request, tenant }: Ticket, { candidates, grounds, ramp }: Weighed, chosen: Member, nowMs: number): Routed {
    const cost = costOf(request, chosen.cachedTokens(request));
    const dueMs = firstTokenDueMs(chosen, cost, nowMs);
    const lease = this.#ledger.open(chosen.endpoint.id, cost, request.output, nowMs);
    const flight = new Flight(request, lease, chosen, dueMs, tenant);
    lease.holder = flight;
    chosen.breaker.began(lease, nowMs);
    if (ramp !== undefined) rampMoved(ramp, chosen, nowMs);
    if (flight.isUnseen) this.unseen.add(flight);
    this.#drain.began(nowMs);
    this.#sharing.sent(flight);
    if (isNonEmpty(candidates)) this.policy.routed?.({ request, chosen, candidates });
    return new RoutedOn(grounds, chosen.endpoint, lease);
  }

  /** The request goes nowhere. @param ahead How many are held that go before it, should it come again. */
  refuse(reason: RefusalReason, grounds: Grounds, ahead: number, nowMs: number): Refused {
    this.#refusals[reason] = (this.#refusals[reason] ?? 0) + 1;
    return new RefusedOn(grounds, reason, this.#retryAfterMs(reason, ahead, nowMs));
  }

  /** A request that was routed is over. */
  ended(flight: Flight, kind: Outcome["kind"], nowMs: number): void {
    this.unseen.remove(flight);
    this.#drain.ended(kind !== "failed", nowMs);
    this.#sharing.ended(flight);
  }

  /** Whatever the policy says, an endpoint has no room beyond its cap. */
  #roomRule(): Pick<Policy, "hasRoom"> {
    const { policy } = this;
    if (!this.#pool.hasCaps) return policy;
    return {
      hasRoom: (request, candidate, pool) =>
        !isAtCap(candidate) && (policy.hasRoom === undefined || policy.hasRoom(request, candidate, pool)),
    };
  }

  /** Where a request binds late and all are at their caps, it waits for the best of those. */
  #waitedFor(full: readonly Member[]): readonly Member[] {
    return this.policy.lateBinding === undefined ? [] : full.filter(isAtCap);
  }

  /** Until those ahead have left at the rate at which requests end; where that is not known, until one has. */
  #retryAfterMs(reason: RefusalReason, ahead: number, nowMs: number): number {
    const perSecond = FOR_WANT_OF_ROOM.has(reason) ? this.#drain.perSecond(nowMs) : undefined;
    const waitMs = perSecond === undefined ? this.#nextEndMs() : (1000 * (ahead + 1)) / perSecond;
    return Math.min(MAX_RETRY_AFTER_MS, Math.max(MIN_RETRY_AFTER_MS, waitMs));
  }

  /** The time in which the endpoint with the least work finishes a request's worth of it; 0: there is no work. */
  #nextEndMs(): number {
    let leastMs = Number.POSITIVE_INFINITY;
    for (const { account, speed } of this.#pool.members) {
      if (account.requests === 0) continue;
      leastMs = Math.min(leastMs, (1000 * account.outputTokens) / speed.tokensPerSecond / account.requests);
    }
    return Number.isFinite(leastMs) ? leastMs : 0;
  }
}

/** As many requests are in flight there as may be. */
export function isAtCap({ account, endpoint }: Candidate): boolean {
  return account.requests >= (endpoint.maxRequests ?? Number.POSITIVE_INFINITY);
}

function isNonEmpty<Item>(items: readonly Item[]): items is readonly [Item, ...Item[]] {
  return items.length > 0;
}

/** Others pass when something is repaired, not when requests end. */
const FOR_WANT_OF_ROOM: ReadonlySet<RefusalReason> = new Set(["saturated", "queue_full", "queue_timeout", "shed"]);

/** Clients read whole seconds, and SDKs ignore what exceeds a minute. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 60_000;
