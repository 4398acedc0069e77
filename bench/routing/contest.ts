import type { LatencySummary, PeerPolicy, Summary } from "../../src/sim/index.ts";
import { mean } from "../support/statistics.ts";

/** What a policy is judged by. */
export type Metric = "ttftMs" | "e2eMs" | "goodputPercent" | "ttftP99Ms" | "longestWaitMs";

/** All of it, of one run or as a mean over seeds. A time of a run in which no request got that far is infinite. */
export type Figures = Readonly<Record<Metric, number>>;

/** What peers are grouped by: what they do with a request that should wait. */
export type PeerClass = PeerPolicy["class"];

export const PEER_CLASSES: readonly PeerClass[] = ["plain", "own_hold", "expert_hold"];

/** A peer in a cell. */
export interface Contender {
  readonly name: string;
  readonly class: PeerClass;
  /** Means over the seeds it ran. */
  readonly figures: Figures;
}

/** Those by which a peer gets on to the further seeds. Longest waits follow from the others. */
const DECISIVE: readonly Metric[] = ["ttftMs", "e2eMs", "goodputPercent", "ttftP99Ms"];

/** A peer that is further from the best than this on one seed is not the best on the mean of three. */
const NEAR_SHARE = 0.1;

/** Peers of a class that get on by one metric at most: the whole run is to end in a quarter of an hour. */
const MAX_NEAR = 2;

export function figuresOf({ ttftMs, e2eMs, goodputRatio, longestHoldMs }: Summary): Figures {
  return {
    ttftMs: timeOf(ttftMs, "mean"),
    e2eMs: timeOf(e2eMs, "mean"),
    goodputPercent: 100 * goodputRatio,
    ttftP99Ms: timeOf(ttftMs, "p99"),
    longestWaitMs: longestHoldMs,
  };
}

function timeOf(summary: LatencySummary | undefined, figure: "mean" | "p99"): number {
  return summary?.[figure] ?? Number.POSITIVE_INFINITY;
}

/** Means of each metric. */
export function meanFigures(runs: readonly Figures[]): Figures {
  const meanOf = (metric: Metric): number => mean(runs.map((figures) => figures[metric]));
  return {
    ttftMs: meanOf("ttftMs"),
    e2eMs: meanOf("e2eMs"),
    goodputPercent: meanOf("goodputPercent"),
    ttftP99Ms: meanOf("ttftP99Ms"),
    longestWaitMs: meanOf("longestWaitMs"),
  };
}

/** The best by one metric alone; undefined: there is nobody. */
export function bestBy(metric: Metric, contenders: readonly Contender[]): Contender | undefined {
  return ranked(metric, contenders)[0];
}

/** Names of those that came near the best of their class by some metric: they run further seeds. */
export function finalists(contenders: readonly Contender[]): string[] {
  const names = new Set<string>();
  for (const each of PEER_CLASSES) {
    const ofClass = contenders.filter((contender) => contender.class === each);
    for (const metric of DECISIVE) for (const { name } of nearBest(metric, ofClass)) names.add(name);
  }
  return [...names];
}

function nearBest(metric: Metric, contenders: readonly Contender[]): readonly Contender[] {
  const order = ranked(metric, contenders);
  const best = order[0]?.figures[metric] ?? 0;
  const isNear = ({ figures }: Contender): boolean => Math.abs(figures[metric] - best) <= NEAR_SHARE * best;
  return order.slice(0, MAX_NEAR).filter(isNear);
}

/** The best first. Of goodput, more is better. */
function ranked(metric: Metric, contenders: readonly Contender[]): Contender[] {
  const sign = metric === "goodputPercent" ? -1 : 1;
  return contenders.toSorted((a, b) => {
    const [one, other] = [sign * a.figures[metric], sign * b.figures[metric]];
    return one === other ? 0 : one - other;
  });
}
