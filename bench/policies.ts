import { pathToFileURL } from "node:url";
import { createBalancer, endpoint, policyDefinitions, requestProfile, seededRandom } from "../src/core/index.ts";
import { type Arrival, type Served, serveVirtually } from "../test/support/virtual-fleet.ts";

/** How requests fared under one policy; times in ms. */
export interface Comparison {
  readonly policy: string;
  readonly ttftMeanMs: number;
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly endToEndMeanMs: number;
  readonly endToEndP99Ms: number;
  /** Share of the requests that each endpoint got, 0 to 1. */
  readonly shares: Readonly<Record<string, number>>;
}

/** Two fast endpoints, one of half and one of a quarter of their speed; nobody tells the balancer. */
const SLOWDOWNS = { "fast-1": 1, "fast-2": 1, half: 2, quarter: 4 };

/** Well within what the fleet can do; an equal share of it is more than the slowest endpoint keeps up with. */
const REQUESTS_PER_SECOND = 80;
const REQUESTS = 1200;
const SEEDS = [1, 2, 3, 4];

/** Runs the scenario once per policy and seed. */
export function comparePolicies(): Comparison[] {
  return policyDefinitions.map(({ name }) =>
    comparisonOf(
      name,
      SEEDS.flatMap((seed) => serve(name, seed)),
    ),
  );
}

function serve(policy: string, seed: number): Served[] {
  const endpoints = Object.keys(SLOWDOWNS).map((id) => endpoint({ id }));
  const balancer = createBalancer({ policy, endpoints, random: seededRandom(seed) });
  const random = seededRandom(100 + seed);
  const arrivals: Arrival[] = [];
  for (let atMs = 0; arrivals.length < REQUESTS; ) {
    atMs += (-Math.log(1 - random.next()) * 1000) / REQUESTS_PER_SECOND;
    // Pareto: half of the prompts have under 190 tokens, one in 100 over 6,500.
    const promptTokens = Math.min(16_000, Math.ceil(100 * (1 - random.next()) ** (-1 / 1.1)));
    const outputTokens = 4 + Math.floor(-Math.log(1 - random.next()) * 120);
    const key = { model: "m", route: "chat", maxOutputTokens: undefined };
    const profile = requestProfile({ ...key, promptTokens, output: balancer.outputLengths.expect(key) });
    arrivals.push({ atMs, outputTokens, profile });
  }
  return serveVirtually(balancer, SLOWDOWNS, arrivals);
}

function comparisonOf(policy: string, served: readonly Served[]): Comparison {
  const ttftsMs = served.map(({ arrivedAtMs, firstTokenAtMs }) => firstTokenAtMs - arrivedAtMs);
  const endToEndsMs = served.map(({ arrivedAtMs, endedAtMs }) => endedAtMs - arrivedAtMs);
  const share = (id: string) => served.filter(({ endpointId }) => endpointId === id).length / served.length;
  return {
    policy,
    ttftMeanMs: mean(ttftsMs),
    ttftP50Ms: quantile(ttftsMs, 0.5),
    ttftP99Ms: quantile(ttftsMs, 0.99),
    endToEndMeanMs: mean(endToEndsMs),
    endToEndP99Ms: quantile(endToEndsMs, 0.99),
    shares: Object.fromEntries(Object.keys(SLOWDOWNS).map((id) => [id, share(id)])),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function quantile(values: readonly number[], q: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(q * values.length)] ?? Number.NaN;
}

/** The table of docs/policies/README.md, as its source. */
export function tableOf(comparisons: readonly Comparison[]): string {
  const head = ["Policy", "TTFT mean", "p50", "p99", "End to end, mean", "p99", "To the slowest"];
  const rows = comparisons.map(({ policy, shares, ...times }) => [
    policy,
    ...[times.ttftMeanMs, times.ttftP50Ms, times.ttftP99Ms, times.endToEndMeanMs, times.endToEndP99Ms].map((ms) =>
      ms.toFixed(0),
    ),
    `${(100 * (shares.quarter ?? 0)).toFixed(0)} %`,
  ]);
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function main(): void {
  const comparisons = comparePolicies();
  process.stdout.write(`${process.argv.includes("--json") ? JSON.stringify(comparisons) : tableOf(comparisons)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
