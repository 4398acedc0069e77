import type { LatencySummary } from "./latencies.ts";
import type { Summary } from "./summary.ts";

/** One figure of a summary as tables show it. */
export interface Column {
  /** Heading over neighbours that belong together, "TTFT ms"; empty: it stands alone. */
  readonly group: string;
  readonly title: string;
  /** What it means, in a sentence. */
  readonly meaning: string;
  /** Which values are better; undefined: neither. */
  readonly better: "lower" | "higher" | undefined;
  /** How it is compared to a base: as a multiple, or as a difference in percentage points; undefined: not at all. */
  readonly comparedBy: "ratio" | "points" | undefined;
  /** Among those that fit on a terminal. */
  readonly isBrief: boolean;
  /** In the unit that is shown; undefined: there is none. */
  readonly read: (summary: Summary) => number | undefined;
  readonly format: (value: number) => string;
}

/** All figures, in the order of tables. */
export const COLUMNS: readonly Column[] = [
  {
    group: "",
    title: "good %",
    meaning: "Share of all requests that ended within both limits",
    better: "higher",
    comparedBy: "points",
    isBrief: true,
    read: ({ goodputRatio }) => 100 * goodputRatio,
    format: (value) => value.toFixed(1),
  },
  ...latencyColumns("TTFT ms", "arrival to first token", "ttftMs", 1),
  ...latencyColumns("TPOT ms", "time per output token after the first", "tpotMs", 1),
  ...latencyColumns("E2E s", "arrival to end", "e2eMs", 1000),
  {
    group: "",
    title: "tok/s",
    meaning: "Output tokens per second",
    better: "higher",
    comparedBy: "ratio",
    isBrief: true,
    read: ({ outputTokensPerSecond }) => outputTokensPerSecond,
    format: (value) => value.toFixed(0),
  },
  {
    group: "",
    title: "hit %",
    meaning: "Prompt tokens found in the endpoints' prefix caches",
    better: "higher",
    comparedBy: "points",
    isBrief: true,
    read: ({ hitRatio }) => 100 * hitRatio,
    format: (value) => value.toFixed(1),
  },
  {
    group: "",
    title: "hold s",
    meaning: "Longest wait at the balancer",
    better: undefined,
    comparedBy: undefined,
    isBrief: true,
    read: ({ longestHoldMs }) => longestHoldMs / 1000,
    format: significant,
  },
  {
    group: "",
    title: "preempt",
    meaning: "Requests thrown out of a running batch because the KV cache was full",
    better: "lower",
    comparedBy: undefined,
    isBrief: true,
    read: ({ preemptions }) => preemptions,
    format: (value) => value.toFixed(0),
  },
  {
    group: "Spread",
    title: "requests",
    meaning: "Requests of the endpoint with most of them / mean over endpoints",
    better: undefined,
    comparedBy: undefined,
    isBrief: false,
    read: ({ requestSpread }) => requestSpread,
    format: (value) => value.toFixed(2),
  },
  {
    group: "Spread",
    title: "work",
    meaning: "Work of the endpoint with most of it / mean over endpoints",
    better: undefined,
    comparedBy: undefined,
    isBrief: true,
    read: ({ workSpread }) => workSpread,
    format: (value) => value.toFixed(2),
  },
  countColumn("ended", "Requests that were answered to the end", ({ ended }) => ended),
  countColumn("refused", "Requests that were never sent", ({ refused }) => refused),
  countColumn("unfinished", "Requests that were sent and did not end", ({ unfinished }) => unfinished),
];

function latencyColumns(
  group: string,
  meaning: string,
  key: "ttftMs" | "tpotMs" | "e2eMs",
  unitMs: number,
): readonly Column[] {
  const column = (title: keyof LatencySummary): Column => ({
    group,
    title,
    meaning: `${title === "mean" ? "Mean" : title} of ${meaning}`,
    better: "lower",
    comparedBy: "ratio",
    isBrief: title === "mean" || title === "p99" || (key === "ttftMs" && title === "p50"),
    read: (summary) => {
      const latency = summary[key];
      return latency === undefined ? undefined : latency[title] / unitMs;
    },
    format: significant,
  });
  return [column("mean"), column("p50"), column("p90"), column("p99")];
}

function countColumn(title: string, meaning: string, read: (summary: Summary) => number): Column {
  return {
    group: "Requests",
    title,
    meaning,
    better: undefined,
    comparedBy: undefined,
    isBrief: false,
    read,
    format: (value) => value.toFixed(0),
  };
}

/** Three significant digits, whole above 100. */
function significant(value: number): string {
  if (value === 0) return "0";
  return value.toFixed(Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(Math.abs(value))))));
}

/** A figure as it is shown. */
export interface Cell {
  /** "-" where there is none. */
  readonly text: string;
  /** As good as the best of its column, where the policies differ in it. */
  readonly isBest: boolean;
}

/** The cells of one column, one per summary. */
export function cellsOf(column: Column, summaries: readonly Summary[]): Cell[] {
  const values = summaries.map(column.read);
  const texts = values.map((value) => (value === undefined ? "-" : column.format(value)));
  const known = values.filter((value) => value !== undefined);
  const best = known.length === 0 ? undefined : bestOf(known, column.better);
  // What looks equal is equal: no one is best by a digit that is not shown.
  const bestText = best === undefined || new Set(texts).size === 1 ? undefined : column.format(best);
  return texts.map((text) => ({ text, isBest: text === bestText }));
}

function bestOf(values: readonly number[], better: Column["better"]): number | undefined {
  if (better === undefined) return undefined;
  return better === "lower" ? Math.min(...values) : Math.max(...values);
}

/** How `summary` does against `base` in one column, "0.83x" or "+2.1"; empty: it is not compared. */
export function comparisonOf(column: Column, summary: Summary, base: Summary): string {
  const value = column.read(summary);
  const reference = column.read(base);
  if (column.comparedBy === undefined || value === undefined || reference === undefined) return "";
  if (column.comparedBy === "points") return signed(value - reference);
  return reference === 0 ? "" : `${(value / reference).toFixed(2)}x`;
}

function signed(points: number): string {
  const text = points.toFixed(1);
  return Number(text) > 0 ? `+${text}` : text;
}
