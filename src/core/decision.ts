import type { Endpoint } from "./endpoint.ts";
import type { Lease } from "./ledger.ts";
import type { Considered } from "./policy.ts";
import type { Ticket } from "./ticket.ts";

/** Why an endpoint was not a candidate. */
export type Exclusion =
  | "tried"
  | "weight_zero"
  | "draining"
  | "down"
  | "loading"
  | "auth_failed"
  | "model_not_served"
  /** Its requests failed, one after the other or too many: it is out for a while, or has its one trial. */
  | "ejected"
  /** It refused a request for overload, and the pause it asked for is not over. */
  | "busy"
  /** It is new or was out, and has had the share of requests that a cold engine gets. */
  | "warming"
  | "no_room";

/** Why no endpoint was chosen. */
export type RefusalReason =
  /** No endpoint that could serve it takes traffic: none configured, weight 0 or draining. */
  | "no_endpoint"
  /** There are endpoints, but none of them serves the model. */
  | "model_not_served"
  /** Endpoints that could serve it are down, loading or misconfigured. */
  | "unavailable"
  /** Every usable endpoint was tried for this request. */
  | "exhausted"
  /** Usable endpoints exist, none has room, and requests are not held here. */
  | "saturated"
  /** No endpoint has room, and as many requests are held as may be. */
  | "queue_full"
  /** It was held for as long as it may be, or as its client waits. */
  | "queue_timeout"
  /** It was held, and had to go for one that comes first. */
  | "shed"
  /** It was held when the balancer was told to let go of everybody. */
  | "shutting_down";

/** Everything a decision was made of: data, never a log line. */
export interface Explanation {
  readonly policy: string;
  readonly reason: string;
  readonly considered: readonly Considered[];
  readonly excluded: readonly { readonly endpoint: string; readonly why: Exclusion }[];
}

/** The request goes to `endpoint` now; choosing and opening the lease were one step. */
export interface Routed {
  readonly kind: "routed";
  readonly endpoint: Endpoint;
  readonly lease: Lease;
  readonly explanation: Explanation;
}

/** The request goes nowhere. */
export interface Refused {
  readonly kind: "refused";
  readonly reason: RefusalReason;
  /** When another try has a chance, in ms. */
  readonly retryAfterMs: number;
  readonly explanation: Explanation;
}

/**
 * The request is kept here and not sent: its best endpoint has no room for it, and by the time it has, another may be
 * better. The balancer releases the ticket from the event that makes room.
 */
export interface Held {
  readonly kind: "held";
  readonly ticket: Ticket;
  readonly explanation: Explanation;
  /** Who had to go so that it could be held: each refused, as `shed`. Mostly nobody. */
  readonly displaced: readonly Release[];
}

/** What became of a request. */
export type Decision = Routed | Held | Refused;

/** What would become of a request that comes now. */
export interface Forecast {
  /** Where it would go as things stand; undefined: nowhere, or nowhere yet. */
  readonly chosen: Endpoint | undefined;
  /** Not at once: it would be held first. */
  readonly wouldHold: boolean;
  readonly explanation: Explanation;
}

/** A held request was decided at last; whoever holds the ticket acts on it at once. */
export interface Release {
  readonly ticket: Ticket;
  readonly decision: Routed | Refused;
}

/** How a request ended at its endpoint. */
export interface Outcome {
  /** `completed`: the answer is whole. `failed`: the endpoint broke it. `aborted`: the client or the balancer left. */
  readonly kind: "completed" | "failed" | "aborted";
  /** As the engine counted; undefined: it did not say. */
  readonly promptTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** Prompt tokens found in its prefix cache. */
  readonly cachedTokens?: number | undefined;
}
