import type { Summary } from "./summary.ts";

/** What a sweep varies: the rate of arrivals as a multiple of the workload's, or the number of endpoints. */
export type SweepVariable = "rate" | "endpoints";

/** One simulation of a sweep. */
export interface SweepPoint {
  readonly variable: SweepVariable;
  /** What the variable was. */
  readonly value: number;
  /** Of the run; it names the policy. */
  readonly summary: Summary;
}

/** Share of good requests from which on a fleet is said to carry its load. */
export const CAPACITY_GOODPUT = 0.9;

/** What one policy gets out of a fleet. */
export interface Capacity {
  readonly policy: string;
  /** Largest rate, or smallest number of endpoints, that was simulated and carried the load; undefined: none did. */
  readonly value: number | undefined;
}

/** Capacity under each policy of a sweep, in the order of their first points. */
export function capacitiesOf(sweep: readonly SweepPoint[]): Capacity[] {
  const policies = [...new Set(sweep.map(({ summary }) => summary.policy))];
  return policies.map((policy) => ({
    policy,
    value: capacityOf(sweep.filter(({ summary }) => summary.policy === policy)),
  }));
}

/**
 * Read from the easy end on (low rates, many endpoints) up to the first point that fails: a lucky one beyond that is
 * no capacity.
 */
function capacityOf(points: readonly SweepPoint[]): number | undefined {
  const ease = ({ variable, value }: SweepPoint): number => (variable === "rate" ? value : -value);
  let capacity: number | undefined;
  for (const { value, summary } of points.toSorted((a, b) => ease(a) - ease(b))) {
    if (summary.goodputRatio < CAPACITY_GOODPUT) break;
    capacity = value;
  }
  return capacity;
}
