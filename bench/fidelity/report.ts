import { type Host, hostText } from "../support/host.ts";
import { figure, textTable } from "../support/table.ts";
import type { PolicyComparison, ScenarioResult } from "./run.ts";
import { type Gain, gainOf } from "./verdict.ts";

/** The whole comparison; `--json` prints exactly this. */
export interface FidelityResult {
  readonly host: Host;
  readonly minutes: number;
  readonly speedup: number;
  readonly simulations: number;
  readonly scenarios: readonly ScenarioResult[];
  /** What is not as it should be; empty: nothing. */
  readonly faults: readonly string[];
}

/** The comparison as text. */
export function fidelityText({ host, minutes, speedup, simulations, scenarios, faults }: FidelityResult): string {
  const pace = speedup === 1 ? "in real time" : `${speedup} times as fast`;
  return [
    hostText(host),
    `${minutes} minutes of each workload, live ${pace}; simulated ${simulations} times, of which the mean.`,
    ...scenarios.flatMap((scenario) => ["", ...scenarioText(scenario)]),
    "",
    ...(faults.length === 0 ? ["All within bounds."] : faults),
  ].join("\n");
}

function scenarioText(scenario: ScenarioResult): string[] {
  const { name, requests, workload, fleet, policies } = scenario;
  const gain = gainOf(scenario);
  return [
    `${name}: ${requests} requests of ${workload} to ${fleet}`,
    "",
    textTable([LATENCY_HEAD, ...policies.map(latencyRow)]),
    "",
    textTable([DETAIL_HEAD, ...policies.map(detailRow)]),
    ...(gain === undefined || scenario.shows !== "gain"
      ? []
      : ["", textTable([GAIN_HEAD, gainRow("live", gain), gainRow("simulated", gain)])]),
  ];
}

const LATENCY_HEAD: readonly string[] = [
  "mean",
  "TTFT ms live",
  "simulated",
  "diff %",
  "chance",
  "TPOT ms live",
  "simulated",
  "diff %",
  "chance",
  "E2E s live",
  "simulated",
  "diff %",
  "chance",
];

function latencyRow({ policy, live, simulated, difference, chance }: PolicyComparison): string[] {
  const both = (key: "ttftMs" | "tpotMs" | "e2eMs", unitMs: number, digits: number): string[] => [
    figure(live[key] / unitMs, digits),
    figure(simulated[key] / unitMs, digits),
    signedPercent(difference[key]),
    `±${percent(chance[key])}`,
  ];
  return [policy, ...both("ttftMs", 1, 0), ...both("tpotMs", 1, 1), ...both("e2eMs", 1000, 2)];
}

const DETAIL_HEAD: readonly string[] = [
  "live / simulated",
  "hit %",
  "held %",
  "longest hold s",
  "preempted",
  "balancer CPU %",
  "machine CPU %",
  "saturated %",
];

function detailRow({ policy, live, simulated, cpu }: PolicyComparison): string[] {
  const pair = (show: (side: PolicyComparison["live"]) => string): string => `${show(live)} / ${show(simulated)}`;
  return [
    policy,
    pair(({ hitRatio }) => percent(hitRatio)),
    pair(({ heldRatio }) => percent(heldRatio)),
    pair(({ longestHoldMs }) => figure(longestHoldMs / 1000, 1)),
    pair(({ preemptions }) => figure(preemptions, 0)),
    percent(cpu.processes.balancer ?? Number.NaN),
    percent(cpu.machine),
    percent(cpu.saturated),
  ];
}

const GAIN_HEAD: readonly string[] = ["held, times not held", "TTFT", "TPOT", "E2E"];

function gainRow(side: "live" | "simulated", gain: Gain): string[] {
  const { ttftMs, tpotMs, e2eMs } = gain[side];
  return [side, ...[ttftMs, tpotMs, e2eMs].map((ratio) => figure(ratio, 2))];
}

function percent(share: number): string {
  return figure(100 * share, 1);
}

function signedPercent(share: number): string {
  return `${share > 0 ? "+" : ""}${percent(share)}`;
}
