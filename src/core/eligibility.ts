import type { Exclusion, RefusalReason } from "./decision.ts";
import { takesTraffic } from "./health.ts";
import type { Member } from "./member.ts";
import type { RequestProfile } from "./request.ts";
import type { Ramp } from "./slow-start.ts";

/** Who may take a request, and why the others may not. */
export interface Eligibility {
  readonly members: readonly Member[];
  readonly excluded: readonly Excluded[];
  /** Those excluded for want of room alone: what a policy says of them explains a saturated pool. */
  readonly full: readonly Member[];
  /** Those who could take it but are held to a smaller share, whether they may have this one or not; undefined: nobody is. */
  readonly ramp: Ramp<Member> | undefined;
}

export interface Excluded {
  readonly endpoint: string;
  readonly why: Exclusion;
}

export function exclusionOf(
  member: Member,
  request: RequestProfile,
  tried: readonly string[],
  nowMs: number,
): Exclusion | undefined {
  const why = lastingExclusionOf(member, request, tried);
  if (why !== undefined) return why;
  if (!member.breaker.admits(nowMs)) return "ejected";
  return nowMs < member.busyUntilMs ? "busy" : undefined;
}

/**
 * Why it may not take the request, now or a little later. What could not serve the model comes first, so that every other
 * reason is about an endpoint that could.
 */
export function lastingExclusionOf(
  member: Member,
  { model }: RequestProfile,
  tried: readonly string[],
): Exclusion | undefined {
  if (!serves(member, model)) return "model_not_served";
  if (member.isDraining) return "draining";
  if (member.endpoint.weight === 0) return "weight_zero";
  if (!takesTraffic(member.availability)) return member.availability;
  return tried.includes(member.endpoint.id) ? "tried" : undefined;
}

/** Who may take the request, room and warmth aside: those that are free to, or the last resort where there are none. */
export function standingOf(
  members: readonly Member[],
  request: RequestProfile,
  tried: readonly string[],
  nowMs: number,
): Eligibility {
  const able: Member[] = [];
  const excluded: Excluded[] = [];
  for (const member of members) {
    const why = exclusionOf(member, request, tried, nowMs);
    if (why === undefined) able.push(member);
    else excluded.push({ endpoint: member.endpoint.id, why });
  }
  if (able.length > 0) return { members: able, excluded, full: [], ramp: undefined };
  const last = lastResort(members, request, tried, nowMs);
  const isLast = ({ endpoint }: Excluded) => last.some((member) => member.endpoint.id === endpoint);
  return { members: last, excluded: excluded.filter((each) => !isLast(each)), full: [], ramp: undefined };
}

/**
 * Who takes a request that nobody is free to take. Busy is not dead: those that asked for a pause are next. Then, of
 * those that failed too much, the one that has been out longest: it may be well again. Nobody else: what failed its
 * probes or is drained stays out.
 */
export function lastResort(
  members: readonly Member[],
  request: RequestProfile,
  tried: readonly string[],
  nowMs: number,
): readonly Member[] {
  const busy: Member[] = [];
  let longestOut: Member | undefined;
  for (const member of members) {
    const why = exclusionOf(member, request, tried, nowMs);
    if (why === "busy") busy.push(member);
    if (why !== "ejected") continue;
    if (longestOut === undefined || member.breaker.openedAtMs < longestOut.breaker.openedAtMs) longestOut = member;
  }
  return busy.length === 0 && longestOut !== undefined ? [longestOut] : busy;
}

/** A request that names no model leaves the choice to the engine. */
function serves(member: Member, model: string): boolean {
  return model === "" || member.models === undefined || member.models.has(model);
}

/** The most telling reason: the one that says how near an endpoint came to taking the request. */
export function refusalOf(excluded: readonly Excluded[]): RefusalReason {
  const reasons = new Set(excluded.map(({ why }) => why));
  if (reasons.has("no_room")) return "saturated";
  if (reasons.has("tried")) return "exhausted";
  if (reasons.has("down") || reasons.has("loading") || reasons.has("auth_failed")) return "unavailable";
  if (reasons.has("draining") || reasons.has("weight_zero")) return "no_endpoint";
  return reasons.has("model_not_served") ? "model_not_served" : "no_endpoint";
}
