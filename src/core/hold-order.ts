import type { RequestProfile } from "./request.ts";

/**
 * In which order held requests go: the more urgent first; of one urgency, those of the tenant that got least; of one
 * tenant, those with the smaller key, which is the policy's own.
 */
export interface HoldOrder {
  /** Nobody is more urgent than this, however long it waits. Urgencies are whole numbers. */
  readonly topUrgency: number;
  /** Of a request that has just come; each `HoldingLimits.promoteAfterMs` that it waits adds one. */
  urgencyOf(request: RequestProfile): number;
  /** Whose request it is; the same object as long as somebody of that name is held. */
  tenantOf(request: RequestProfile): Tenant;
}

/** One of those who share the endpoints, and what it got of them, in tokens weighed by what they cost. */
export interface Tenant {
  /** What was computed for it. */
  readonly servedTokens: number;
  /** That and what its held requests are expected to take: who claims most is the first to be shed. */
  readonly claimedTokens: number;
  /** What a request is expected to take. */
  costOf(request: RequestProfile): number;
  /** A request of its own came, whatever becomes of it. */
  arrived(): void;
  /** A request of its own is held from now on... */
  held(request: RequestProfile): void;
  /** ...and from now on it is not. */
  left(request: RequestProfile): void;
  /** So many tokens more were computed for it; below 0: fewer than was told. */
  charge(promptTokens: number, outputTokens: number): void;
}

/** What says where in the order a held request is. */
export interface Rank {
  readonly urgency: number;
  readonly tenant: Tenant;
  /** Smallest first. */
  readonly key: number;
}

/** Equal ones stay in the order in which they came. */
export function goesBefore(one: Rank, other: Rank): boolean {
  if (one.urgency !== other.urgency) return one.urgency > other.urgency;
  const lead = one.tenant === other.tenant ? 0 : one.tenant.servedTokens - other.tenant.servedTokens;
  return lead === 0 ? one.key < other.key : lead < 0;
}

const EVERYBODY: Tenant = {
  servedTokens: 0,
  claimedTokens: 0,
  costOf: () => 0,
  arrived: () => undefined,
  held: () => undefined,
  left: () => undefined,
  charge: () => undefined,
};

/** By the policy's key alone: nobody is more urgent, and all are one tenant. */
export const keyOrder: HoldOrder = { topUrgency: 0, urgencyOf: () => 0, tenantOf: () => EVERYBODY };
