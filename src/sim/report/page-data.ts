import type { SimulationResult, Timeline } from "../result.ts";
import { LATENCY_KEYS, type Latencies, latenciesOf, quantile, shareWithin } from "./latencies.ts";
import type { Report } from "./report.ts";
import type { Summary } from "./summary.ts";
import { CAPACITY_GOODPUT, type SweepPoint, type SweepVariable } from "./sweep.ts";

/** What the page of a report draws. Numbers are rounded to what a screen can show. */
export interface PageData {
  /** Names, in the order of all lists that have an entry per policy. */
  readonly policies: readonly string[];
  readonly distributions: readonly Distribution[];
  readonly timeline: FleetTimeline;
  /** Undefined: nothing was swept. */
  readonly sweep: SweepSeries | undefined;
}

/** Cumulative distributions of one latency. */
export interface Distribution {
  readonly latency: keyof Latencies;
  /** Limit of the SLO; undefined: it has none for this latency. */
  readonly limitMs: number | undefined;
  readonly atMs: readonly number[];
  /** Per policy: percentage of requests within each time of `atMs`; empty: it was not run, or had none. */
  readonly percents: readonly (readonly number[])[];
}

/** The fleets of all policies over the same times. */
export interface FleetTimeline {
  readonly atS: readonly number[];
  /** Endpoint ids, in the order of the lists of `policies`. */
  readonly endpoints: readonly string[];
  /** Per policy and endpoint; empty: it was not run. */
  readonly policies: readonly (readonly EndpointSeries[])[];
}

/** One endpoint over the times of a timeline; null: no sample then. */
export type EndpointSeries = Readonly<Record<EndpointQuantity, readonly (number | null)[]>>;

/** What is shown of an endpoint: counts of requests, and its KV cache in percent. */
export type EndpointQuantity = "running" | "waiting" | "held" | "kvPercent";

/** Figures over the variable of a sweep. */
export interface SweepSeries {
  readonly variable: SweepVariable;
  readonly values: readonly number[];
  /** Goodput from which on a fleet carries its load, in percent. */
  readonly capacityPercent: number;
  /** The first one is goodput. */
  readonly metrics: readonly SweepMetric[];
}

/** One figure over the variable of a sweep. */
export interface SweepMetric {
  readonly title: string;
  readonly unit: "%" | "ms" | "tok/s";
  /** Per policy and value; null: there is none. */
  readonly values: readonly (readonly (number | null)[])[];
}

/** Points of a curve: about as many as it has pixels to bend in. */
const CURVE_POINTS = 200;

/** Reduces a report to what its page draws. */
export function pageData(report: Report): PageData {
  const policies = [
    ...new Set([...report.results.map(({ policy }) => policy), ...report.sweep.map(({ summary }) => summary.policy)]),
  ];
  const results = policies.map((policy) => report.results.find((result) => result.policy === policy));
  const limits = { ttftMs: report.slo.ttftMs, tpotMs: report.slo.tpotMs, e2eMs: undefined };
  const latencies = results.map((result) => latenciesOf(result?.requests ?? []));
  return {
    policies,
    distributions: LATENCY_KEYS.map((latency) => ({
      latency,
      limitMs: limits[latency],
      ...curvesOf(latencies.map((ofPolicy) => ofPolicy[latency])),
    })),
    timeline: timelineOf(results),
    sweep: sweepSeries(report.sweep, policies),
  };
}

/** Fastest that is shown: a logarithmic axis has no 0, and within a tenth of a millisecond there is nothing to see. */
const LEAST_MS = 0.1;
/** Share of the fastest requests that may lie left of the axis: a few lucky ones would take half of it. */
const HIDDEN_SHARE = 0.002;

function curvesOf(sorted: readonly Latencies["ttftMs"][]): Pick<Distribution, "atMs" | "percents"> {
  const present = sorted.filter(({ length }) => length > 0);
  if (present.length === 0) return { atMs: [], percents: sorted.map(() => []) };
  const least = Math.max(LEAST_MS, Math.min(...present.map((values) => quantile(values, HIDDEN_SHARE))));
  const most = Math.max(least * 1.01, ...present.map((values) => values.at(-1) as number));
  const atMs = Array.from({ length: CURVE_POINTS + 1 }, (_, step) =>
    // The last point lies a little beyond the slowest request, so that rounding does not leave it out.
    digits(least * ((most * 1.001) / least) ** (step / CURVE_POINTS), 5),
  );
  const percents = sorted.map((values) =>
    values.length === 0 ? [] : atMs.map((limit) => decimals(100 * shareWithin(values, limit), 2)),
  );
  return { atMs, percents };
}

function timelineOf(results: readonly (SimulationResult | undefined)[]): FleetTimeline {
  const timelines = results.map((result) => result?.timeline);
  const endMs = Math.max(0, ...timelines.map((timeline) => timeline?.atMs.at(-1) ?? 0));
  const samples = Math.max(1, ...timelines.map((timeline) => timeline?.atMs.length ?? 0));
  const spans = Math.min(CURVE_POINTS, samples);
  // Half a span more than the last sample: it belongs into the last span.
  const spanMs = Math.max(endMs, 1) / Math.max(1, spans - 0.5);
  const endpoints = [...new Set(timelines.flatMap((timeline) => Object.keys(timeline?.endpoints ?? {})))];
  return {
    atS: Array.from({ length: spans }, (_, span) => digits(((span + 0.5) * spanMs) / 1000, 5)),
    endpoints,
    policies: timelines.map((timeline) =>
      timeline === undefined ? [] : endpoints.map((id) => endpointSeries(timeline, id, spans, spanMs)),
    ),
  };
}

function endpointSeries(timeline: Timeline, id: string, spans: number, spanMs: number): EndpointSeries {
  const samples = timeline.endpoints[id] ?? [];
  const meansOf = (read: (sample: (typeof samples)[number]) => number): (number | null)[] => {
    const sums = new Float64Array(spans);
    const counts = new Uint32Array(spans);
    samples.forEach((sample, index) => {
      const span = Math.min(spans - 1, Math.floor((timeline.atMs[index] ?? 0) / spanMs));
      sums[span] = (sums[span] ?? 0) + read(sample);
      counts[span] = (counts[span] ?? 0) + 1;
    });
    return Array.from(sums, (sum, span) => (counts[span] ? decimals(sum / counts[span], 1) : null));
  };
  return {
    running: meansOf(({ running }) => running),
    waiting: meansOf(({ waiting }) => waiting),
    held: meansOf(({ held }) => held),
    kvPercent: meansOf(({ kvUsedRatio }) => 100 * kvUsedRatio),
  };
}

type MetricDefinition = Omit<SweepMetric, "values"> & { readonly read: (summary: Summary) => number | undefined };

const SWEEP_METRICS: readonly MetricDefinition[] = [
  { title: "Goodput", unit: "%", read: ({ goodputRatio }) => 100 * goodputRatio },
  { title: "TTFT, mean", unit: "ms", read: ({ ttftMs }) => ttftMs?.mean },
  { title: "TTFT, p99", unit: "ms", read: ({ ttftMs }) => ttftMs?.p99 },
  { title: "TPOT, mean", unit: "ms", read: ({ tpotMs }) => tpotMs?.mean },
  { title: "TPOT, p99", unit: "ms", read: ({ tpotMs }) => tpotMs?.p99 },
  { title: "E2E, mean", unit: "ms", read: ({ e2eMs }) => e2eMs?.mean },
  { title: "E2E, p99", unit: "ms", read: ({ e2eMs }) => e2eMs?.p99 },
  { title: "Hit ratio", unit: "%", read: ({ hitRatio }) => 100 * hitRatio },
  { title: "Output", unit: "tok/s", read: ({ outputTokensPerSecond }) => outputTokensPerSecond },
];

function sweepSeries(sweep: readonly SweepPoint[], policies: readonly string[]): SweepSeries | undefined {
  const [first] = sweep;
  if (first === undefined) return undefined;
  const values = [...new Set(sweep.map(({ value }) => value))].sort((a, b) => a - b);
  const grid = policies.map((policy) =>
    values.map((value) => sweep.find((point) => point.value === value && point.summary.policy === policy)?.summary),
  );
  const metrics = SWEEP_METRICS.map(({ read, ...metric }) => ({
    ...metric,
    values: grid.map((summaries) =>
      summaries.map((summary) => {
        const value = summary && read(summary);
        return value === undefined ? null : digits(value, 5);
      }),
    ),
  }));
  return { variable: first.variable, values, capacityPercent: 100 * CAPACITY_GOODPUT, metrics };
}

function decimals(value: number, count: number): number {
  return Number(value.toFixed(count));
}

function digits(value: number, count: number): number {
  return Number(value.toPrecision(count));
}
