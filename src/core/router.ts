import { costOf } from "./cost.ts";
import type { Explanation, Refused, Routed } from "./decision.ts";
import { Flight, firstTokenDueMs } from "./flight.ts";
import type { Ledger } from "./ledger.ts";
import type { Candidate, Policy } from "./policy.ts";
import { type Member, type Pool, refusalOf } from "./pool.ts";
import type { Random } from "./random.ts";
import type { RequestProfile } from "./request.ts";
import type { Sharing } from "./sharing.ts";
import { SlotList } from "./slot-list.ts";
import type { Ticket } from "./ticket.ts";

/** A request that the policy looked at. */
export interface Weighed {
  /** Undefined: no endpoint can take it. */
  readonly chosen: Member | undefined;
  /** Those that could; empty: none. */
  readonly candidates: readonly Candidate[];
  readonly explanation: Explanation;
}

/** Asks the policy, and carries out what was decided: the lease and the flight open in one step. */
export class Router {
  readonly policyName: string;
  readonly policy: Policy;
  readonly #pool: Pool;
  readonly #ledger: Ledger;
  readonly #sharing: Sharing;
  /** Flights whose tokens are not seen. */
  readonly unseen: SlotList<Flight> = new SlotList<Flight>();

  constructor(policyName: string, policy: Policy, pool: Pool, ledger: Ledger, sharing: Sharing) {
    this.policyName = policyName;
    this.policy = policy;
    this.#pool = pool;
    this.#ledger = ledger;
    this.#sharing = sharing;
  }

  /** What the policy would choose, with nothing changed. */
  weigh({ request, tried, heldAtMs, place }: Ticket, random: Random, nowMs: number): Weighed {
    const { members, full, excluded } = this.#pool.eligible(request, tried, this.policy);
    const context = { nowMs, random, arrivedAtMs: heldAtMs, place };
    if (!isNonEmpty(members)) {
      const [reason, considered] = isNonEmpty(full)
        ? ["no endpoint has room", this.policy.choose(request, full, context).considered]
        : ["no endpoint can take it", []];
      const explanation = { policy: this.policyName, reason, considered, excluded };
      return { chosen: undefined, candidates: [], explanation };
    }
    const { chosen, reason, considered } = this.policy.choose(request, members, context);
    const explanation = { policy: this.policyName, reason, considered, excluded };
    // Candidates are the pool's own members.
    return { chosen: chosen as Member, candidates: members, explanation };
  }

  /** The request goes to `chosen`. */
  route(request: RequestProfile, { candidates, explanation }: Weighed, chosen: Member, nowMs: number): Routed {
    const cost = costOf(request, chosen.cachedTokens(request));
    const dueMs = firstTokenDueMs(chosen, cost, nowMs);
    const lease = this.#ledger.open(chosen.endpoint.id, cost, request.output, nowMs);
    const flight = new Flight(request, lease, chosen, dueMs);
    lease.holder = flight;
    if (flight.isUnseen) this.unseen.add(flight);
    this.#sharing.sent(flight);
    if (isNonEmpty(candidates)) this.policy.routed?.({ request, chosen, candidates });
    return { kind: "routed", endpoint: chosen.endpoint, lease, explanation };
  }

  /** The request goes nowhere. */
  refuse({ explanation }: Weighed): Refused {
    const reason = refusalOf(explanation.excluded);
    return { kind: "refused", reason, retryAfterMs: this.#retryAfterMs(), explanation };
  }

  /** The time in which the endpoint with the least work finishes a request's worth of it. */
  #retryAfterMs(): number {
    let leastMs = Number.POSITIVE_INFINITY;
    for (const { account, speed } of this.#pool.members) {
      if (account.requests === 0) continue;
      leastMs = Math.min(leastMs, (1000 * account.outputTokens) / speed.tokensPerSecond / account.requests);
    }
    return Math.min(MAX_RETRY_AFTER_MS, Math.max(MIN_RETRY_AFTER_MS, Number.isFinite(leastMs) ? leastMs : 0));
  }
}

function isNonEmpty<Item>(items: readonly Item[]): items is readonly [Item, ...Item[]] {
  return items.length > 0;
}

/** Clients read whole seconds, and SDKs ignore what exceeds a minute. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 60_000;
