import type { Explanation, Held, RefusalReason, Refused, Release, Routed } from "./decision.ts";
import type { Excluded } from "./eligibility.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Lease } from "./ledger.ts";
import type { Choice, Considered } from "./policy.ts";
import type { Ticket } from "./ticket.ts";

/** What something is decided on. The explanation is written out when it is asked for: of most decisions nobody asks. */
export class Grounds {
  readonly policy: string;
  readonly reason: string;
  readonly excluded: readonly Excluded[];
  readonly #choice: Pick<Choice, "considered"> | undefined;
  #explanation: Explanation | undefined;

  /** @param choice Of the policy; left out: it was not asked. */
  constructor(policy: string, reason: string, excluded: readonly Excluded[], choice?: Pick<Choice, "considered">) {
    this.policy = policy;
    this.reason = reason;
    this.excluded = excluded;
    this.#choice = choice;
  }

  /** The explanation's. */
  get considered(): readonly Considered[] {
    return this.explanation.considered;
  }

  /** The same object whenever it is asked for. */
  get explanation(): Explanation {
    this.#explanation ??= {
      policy: this.policy,
      reason: this.reason,
      considered: this.#choice?.considered ?? [],
      excluded: this.excluded,
    };
    return this.#explanation;
  }
}

/** A decision that keeps its grounds instead of its explanation. */
abstract class Grounded {
  readonly #grounds: Grounds;

  constructor(grounds: Grounds) {
    this.#grounds = grounds;
  }

  get explanation(): Explanation {
    return this.#grounds.explanation;
  }
}

/** The request goes to an endpoint, on these grounds. */
export class RoutedOn extends Grounded implements Routed {
  readonly kind = "routed";
  readonly endpoint: Endpoint;
  readonly lease: Lease;

  constructor(grounds: Grounds, endpoint: Endpoint, lease: Lease) {
    super(grounds);
    this.endpoint = endpoint;
    this.lease = lease;
  }
}

/** The request goes nowhere, on these grounds. */
export class RefusedOn extends Grounded implements Refused {
  readonly kind = "refused";
  readonly reason: RefusalReason;
  readonly retryAfterMs: number;

  constructor(grounds: Grounds, reason: RefusalReason, retryAfterMs: number) {
    super(grounds);
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The request is kept here, on these grounds. */
export class HeldOn extends Grounded implements Held {
  readonly kind = "held";
  readonly ticket: Ticket;
  readonly displaced: readonly Release[];

  constructor(grounds: Grounds, ticket: Ticket, displaced: readonly Release[]) {
    super(grounds);
    this.ticket = ticket;
    this.displaced = displaced;
  }
}
