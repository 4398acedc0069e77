import type { LatencySummary } from "./latencies.ts";
import type { Report } from "./report.ts";
import { type Summary, summarize } from "./summary.ts";
import { capacitiesOf, type SweepVariable } from "./sweep.ts";

/**
 * A report as data. Keys are always there, in this order; what does not exist is `null`. New keys may come, a change
 * to one that is here raises `format`.
 */
export interface ReportJson {
  readonly format: 1;
  /** The command line that makes this report again. */
  readonly command: string;
  /** Name and value of what was simulated, as texts. */
  readonly settings: Readonly<Record<string, string>>;
  /** Limits within which a request is good. */
  readonly slo: { readonly ttftMs: number; readonly tpotMs: number };
  /** One entry per policy. */
  readonly policies: readonly SummaryJson[];
  /** `null`: nothing was swept. */
  readonly sweep: SweepJson | null;
}

/** One run: `Summary` with `null` where a latency has no values. Times in ms, ratios 0 to 1. */
export interface SummaryJson extends Omit<Summary, "ttftMs" | "tpotMs" | "e2eMs"> {
  readonly ttftMs: LatencySummary | null;
  readonly tpotMs: LatencySummary | null;
  readonly e2eMs: LatencySummary | null;
}

/** All runs of a sweep, and what they say of capacity. */
export interface SweepJson {
  readonly variable: SweepVariable;
  readonly points: readonly { readonly value: number; readonly summary: SummaryJson }[];
  /** Per policy the largest rate, or smallest number of endpoints, with 90 % goodput; `null`: none had it. */
  readonly capacities: readonly { readonly policy: string; readonly value: number | null }[];
}

/** The report as one object for `JSON.stringify`. */
export function reportJson({ command, settings, slo, results, sweep }: Report): ReportJson {
  return {
    format: 1,
    command,
    settings,
    slo: { ttftMs: slo.ttftMs, tpotMs: slo.tpotMs },
    policies: results.map((result) => summaryJson(summarize(result, slo))),
    sweep: sweepJson(sweep),
  };
}

function sweepJson(sweep: Report["sweep"]): SweepJson | null {
  const [first] = sweep;
  if (first === undefined) return null;
  return {
    variable: first.variable,
    points: sweep.map(({ value, summary }) => ({ value, summary: summaryJson(summary) })),
    capacities: capacitiesOf(sweep).map(({ policy, value }) => ({ policy, value: value ?? null })),
  };
}

function summaryJson(summary: Summary): SummaryJson {
  return {
    ...summary,
    ttftMs: summary.ttftMs ?? null,
    tpotMs: summary.tpotMs ?? null,
    e2eMs: summary.e2eMs ?? null,
  };
}
