import { bestBy, type Contender, type Figures, type Metric, PEER_CLASSES, type PeerClass } from "./contest.ts";

/** What our policy is to reach in a cell, against the best of some peers by one metric. */
export interface Target {
  readonly metric: Metric;
  /** Classes whose best it is compared to, or the name of one peer. */
  readonly against: readonly PeerClass[] | string;
  /** Of a time: ours over theirs at most. Of goodput: ours less theirs, in points, at least. */
  readonly limit: number;
  /** It is for the policy that was told the cell's limit of time per output token. */
  readonly hasTpotTarget: boolean;
}

/** A target, and how far ours came. */
export interface Verdict {
  readonly target: Target;
  /** Whom ours was compared to; undefined: nobody ran. */
  readonly rival: string | undefined;
  /** Ratio or difference, as the target's limit. */
  readonly value: number;
  readonly isMet: boolean;
}

/** Peers of every class. */
export const ALL: readonly PeerClass[] = PEER_CLASSES;

/** The hold that a strong engineer would build; its longest wait is the measure of ours. */
export const EXPERT_HOLD = "expert_lmetric_shortest";

/** A time of at most `limit` times the best. */
export function atMost(metric: Metric, limit: number, against: Target["against"] = ALL): Target {
  return { metric, against, limit, hasTpotTarget: false };
}

/** Goodput of at least the best plus `limit` points. */
export function goodput(limit: number, against: Target["against"] = ALL): Target {
  return { metric: "goodputPercent", against, limit, hasTpotTarget: false };
}

/** The same for the policy that knows the limit of time per output token, against those that hold. */
export function goodputWithTpotTarget(limit: number): Target {
  return { metric: "goodputPercent", against: ["own_hold", "expert_hold"], limit, hasTpotTarget: true };
}

/** Ours against the rest: a ratio of times, or a difference of goodput in points. */
export function compare(metric: Metric, ours: number, theirs: number): number {
  return metric === "goodputPercent" ? ours - theirs : ours / theirs;
}

export function judge(target: Target, ours: Figures, contenders: readonly Contender[]): Verdict {
  const { metric, against, limit } = target;
  const rival = bestBy(
    metric,
    contenders.filter((each) => (typeof against === "string" ? each.name === against : against.includes(each.class))),
  );
  if (rival === undefined) return { target, rival: undefined, value: Number.NaN, isMet: false };
  const value = compare(metric, ours[metric], rival.figures[metric]);
  const isMet = metric === "goodputPercent" ? value >= limit : value <= limit;
  return { target, rival: rival.name, value, isMet };
}
