/**
 * What it costs in the simulator that several worker processes share the requests and tell each other of their work:
 * latencies as a multiple of one process's. Run with `npx tsx bench/workers.ts --traces FOLDER`; docs/traces.md says
 * where traces are published. `--json` prints one JSON object instead of the table.
 */

import { parseArgs } from "node:util";
import {
  exchangeWork,
  parseFleet,
  policySetup,
  type ReplicaOptions,
  simulate,
  summarize,
  syntheticWorkload,
  type Workload,
} from "../src/sim/index.ts";
import { CELLS } from "./routing/cells.ts";
import { mean } from "./support/statistics.ts";
import { figure, textTable } from "./support/table.ts";

/** From `process.send` in one worker over the primary to the event of another, on a machine that has something to do. */
const IPC_DELAY_MS = 1;

/** One workload on one fleet. */
interface Scenario {
  readonly name: string;
  readonly fleet: string;
  readonly workload: (traces: string, seed: number) => Workload;
}

const SCENARIOS: readonly Scenario[] = [
  ofCell("azure conv x6"),
  ofCell("azure code x2"),
  ofCell("conversation x3"),
  ofCell("m-large 14400 s x1.05"),
  {
    name: "chat, 64 endpoints",
    fleet: "64*llama8b-h100",
    workload: (_, seed) => madeUp("rate=2000,requests=40000,in=lognormal(500,1),out=lognormal(80,1)", seed),
  },
  {
    name: "prefixes, 64 endpoints",
    fleet: "64*llama8b-h100",
    workload: (_, seed) =>
      madeUp("rate=640,requests=13000,in=lognormal(2500,1),out=lognormal(150,1),prefix=512x1024", seed),
  },
];

/** In ms. */
interface Latencies {
  readonly e2e: number;
  readonly e2eP99: number;
  readonly ttft: number;
  readonly ttftP99: number;
}

/** Several workers against one: the mean over the seeds, and the least and the greatest of mean E2E. */
interface Comparison extends Latencies {
  readonly scenario: string;
  readonly workers: number;
  /** Undefined: they know nothing of one another. */
  readonly intervalMs: number | undefined;
  readonly e2eRange: readonly [number, number];
}

function ofCell(wanted: string): Scenario {
  const cell = CELLS.find(({ name }) => name === wanted);
  if (cell === undefined) throw new Error(`no cell "${wanted}"`);
  return cell;
}

function madeUp(spec: string, seed: number): Workload {
  return syntheticWorkload(`synthetic:${spec},seed=${seed}`);
}

/** Clients keep connections: whichever is free takes the next request, and each belongs to one worker. */
function replicasOf(count: number, intervalMs: number | undefined): ReplicaOptions {
  const replication = intervalMs === undefined ? {} : { replication: exchangeWork(intervalMs, IPC_DELAY_MS) };
  return { count, dealing: "at_random", ...replication };
}

function latenciesOf(scenario: Scenario, workload: Workload, seed: number, replicas?: ReplicaOptions): Latencies {
  const fleet = parseFleet(scenario.fleet);
  const setup = policySetup("least_delay", fleet.engines);
  const result = simulate({ workload, fleet, ...setup, seed, ...(replicas && { replicas }) });
  const { e2eMs, ttftMs, ended, requests } = summarize(result, { ttftMs: 2_000, tpotMs: 50 });
  if (e2eMs === undefined || ttftMs === undefined || ended < requests) throw new Error("not all requests ended");
  return { e2e: e2eMs.mean, e2eP99: e2eMs.p99, ttft: ttftMs.mean, ttftP99: ttftMs.p99 };
}

function compare(scenario: Scenario, traces: string, seeds: readonly number[], intervals: readonly number[]) {
  const workloads = seeds.map((seed) => scenario.workload(traces, seed));
  const runs = (replicas?: ReplicaOptions): Latencies[] =>
    seeds.map((seed, i) => latenciesOf(scenario, workloads[i] as Workload, seed, replicas));
  const one = runs();
  const ways = [2, 4].flatMap((workers) => [
    ...intervals.map((intervalMs) => ({ workers, intervalMs })),
    { workers, intervalMs: undefined },
  ]);
  return ways.map(({ workers, intervalMs }): Comparison => {
    const several = runs(replicasOf(workers, intervalMs));
    const ratios = (part: keyof Latencies) => several.map((each, i) => each[part] / (one[i] as Latencies)[part]);
    const of = (part: keyof Latencies): number => mean(ratios(part));
    const e2es = ratios("e2e");
    return {
      ...{ scenario: scenario.name, workers, intervalMs, e2eRange: [Math.min(...e2es), Math.max(...e2es)] },
      ...{ e2e: of("e2e"), e2eP99: of("e2eP99"), ttft: of("ttft"), ttftP99: of("ttftP99") },
    };
  });
}

function rowOf({ scenario, workers, intervalMs, e2eRange, ...latencies }: Comparison): string[] {
  const { e2e, e2eP99, ttft, ttftP99 } = latencies;
  const [least, greatest] = e2eRange.map((ratio) => figure(ratio, 3));
  const exchange = intervalMs === undefined ? "never" : `${intervalMs} ms`;
  return [
    scenario,
    `${workers}`,
    exchange,
    figure(e2e, 3),
    `${least}-${greatest}`,
    ...[e2eP99, ttft, ttftP99].map((ratio) => figure(ratio, 2)),
  ];
}

function main(): void {
  const { values } = parseArgs({
    options: {
      traces: { type: "string", default: "../shared/traces" },
      seeds: { type: "string", default: "1,2,3" },
      intervals: { type: "string", default: "10" },
      only: { type: "string", default: "" },
      json: { type: "boolean", default: false },
    },
  });
  const numbers = (list: string): number[] => list.split(",").map(Number);
  const { traces } = values;
  const chosen = SCENARIOS.filter(({ name }) => name.includes(values.only));
  const all = chosen.flatMap((each) => compare(each, traces, numbers(values.seeds), numbers(values.intervals)));
  if (values.json) {
    process.stdout.write(`${JSON.stringify(all)}\n`);
    return;
  }
  const head = ["Workload", "workers", "exchange", "E2E", "of seeds", "E2E p99", "TTFT", "TTFT p99"];
  process.stdout.write(`Latencies as a multiple of one process's\n\n${textTable([head, ...all.map(rowOf)])}\n`);
}

main();
