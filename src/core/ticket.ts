import type { Rank, Tenant } from "./hold-order.ts";
import type { RequestProfile } from "./request.ts";

/** How a request came. */
export interface Arrival {
  /** Ids this request has already failed on. */
  readonly tried: readonly string[];
  /** When it came here first: before `heldAtMs`, if it failed somewhere since. */
  readonly arrivedAtMs: number;
  readonly heldAtMs: number;
  /** What is kept in memory for it while it is held. */
  readonly bodyBytes: number;
}

/** A request that the balancer keeps: decided again at every event that may make room for it. */
export class Ticket implements Rank {
  readonly request: RequestProfile;
  readonly tried: readonly string[];
  readonly arrivedAtMs: number;
  readonly heldAtMs: number;
  readonly bodyBytes: number;
  /** Counts tickets. */
  readonly number: number;
  readonly tenant: Tenant;
  /** From here on it is not held any more. */
  readonly deadlineMs: number;
  /** The most urgent are the first to go; waiting adds to it. The holding's own. */
  urgency: number;
  /** When waiting adds to its urgency next; infinity: never. The holding's own. */
  promotedAtMs: number;
  /** For whoever asked for the decision: what belongs to it there. The balancer does not look at it. */
  holder: object | undefined;
  /** Where it is held; the holding's own. Undefined: nowhere any more. */
  place: HoldingPlace | undefined;
  /** Its place among those that time does something to; -1: time does nothing to it. */
  duePlace = -1;

  constructor(number: number, request: RequestProfile, arrival: Arrival, wait: Wait) {
    this.number = number;
    this.request = request;
    this.tried = arrival.tried;
    this.arrivedAtMs = arrival.arrivedAtMs;
    this.heldAtMs = arrival.heldAtMs;
    this.bodyBytes = arrival.bodyBytes;
    this.tenant = wait.tenant;
    this.urgency = wait.urgency;
    this.promotedAtMs = wait.promotedAtMs;
    this.deadlineMs = wait.deadlineMs;
  }

  /** Where it is; a ticket that is asked for it is held. */
  get heldPlace(): HoldingPlace {
    if (this.place === undefined) throw new Error("this ticket is not held");
    return this.place;
  }

  /** Its place's. */
  get key(): number {
    return this.heldPlace.key;
  }

  /** When time does something to it next. */
  get dueMs(): number {
    return Math.min(this.promotedAtMs, this.deadlineMs);
  }
}

/** How a ticket waits. */
export interface Wait extends Omit<Rank, "key"> {
  readonly promotedAtMs: number;
  readonly deadlineMs: number;
}

/** A ticket's place in a line. */
export interface HoldingPlace {
  /** The endpoint it is held for; undefined: any, none has room. */
  readonly endpointId: string | undefined;
  /** Its order among those held there. */
  readonly key: number;
  /** Work it will be there. */
  readonly prefillTokens: number;
  readonly prefillPairs: number;
}
