import { type Host, hostText } from "../support/host.ts";
import { figure, textTable } from "../support/table.ts";
import { type PolicyResult, PROFILE, SPEEDS } from "./run.ts";

/** The whole replay; `--json` prints exactly this. */
export interface ReplayResult {
  readonly host: Host;
  readonly trace: string;
  readonly minutes: number;
  readonly speedup: number;
  readonly seed: number;
  readonly profile: string;
  readonly speeds: readonly number[];
  readonly policies: readonly PolicyResult[];
}

/** Share of saturated seconds from which on the machine, not the policy, makes the figures. */
const SATURATION_FLAG = 0.02;

/** The replay as text. */
export function replayText(result: ReplayResult): string {
  const { policies } = result;
  const isFlagged = ({ cpu }: PolicyResult): boolean => cpu.saturated >= SATURATION_FLAG;
  return [
    hostText(result.host),
    `First ${result.minutes} minutes of ${result.trace}, ${result.speedup} times as fast; engines ${PROFILE} at ` +
      `${SPEEDS.join(", ")} of its speed. Times are the trace's: as measured, times ${result.speedup}.`,
    "",
    textTable([LATENCY_HEAD, ...policies.map(latencyRow)]),
    "",
    textTable([spreadHead(), ...policies.map(spreadRow)]),
    "",
    textTable([cpuHead(policies), ...policies.map((policy) => cpuRow(policy, isFlagged(policy)))]),
    ...(policies.some(isFlagged) ? ["* a core was at its limit: waiting for it is part of these figures."] : []),
    ...policies.flatMap(({ policy, problems }) =>
      Object.entries(problems).map(([problem, count]) => `${policy}: ${count} x ${problem}`),
    ),
  ].join("\n");
}

const LATENCY_HEAD: readonly string[] = [
  "policy",
  "requests",
  "failed",
  "TTFT mean",
  "p50",
  "p90",
  "p99 ms",
  "TPOT p50",
  "p99 ms",
  "E2E mean",
  "p99 s",
];

function latencyRow({ policy, requests, failures, ttftMs, tpotMs, e2eMs }: PolicyResult): string[] {
  return [
    policy,
    String(requests),
    String(failures),
    ...[ttftMs.mean, ttftMs.p50, ttftMs.p90, ttftMs.p99].map((value) => figure(value, 0)),
    ...[tpotMs.p50, tpotMs.p99].map((value) => figure(value, 0)),
    ...[e2eMs.mean, e2eMs.p99].map((value) => figure(value / 1000, 1)),
  ];
}

function spreadHead(): string[] {
  const columns = (what: string): string[] =>
    SPEEDS.map((speed, index) => (index === 0 ? `${what} % x${speed}` : `x${speed}`));
  return ["policy", ...columns("requests"), ...columns("tokens"), "max/mean load", "in flight"];
}

function spreadRow({ policy, spread, inFlight }: PolicyResult): string[] {
  return [
    policy,
    ...spread.endpoints.map(({ requests }) => percent(requests)),
    ...spread.endpoints.map(({ tokens }) => percent(tokens)),
    figure(spread.maxToMean, 2),
    figure(inFlight, 0),
  ];
}

function cpuHead(policies: readonly PolicyResult[]): string[] {
  return ["CPU %", ...Object.keys(policies[0]?.cpu.processes ?? {}), "machine", "saturated", "late p99 ms"];
}

function cpuRow({ policy, cpu, sendDelayP99Ms }: PolicyResult, isFlagged: boolean): string[] {
  return [
    `${policy}${isFlagged ? " *" : ""}`,
    ...Object.values(cpu.processes).map(percent),
    percent(cpu.machine),
    percent(cpu.saturated),
    figure(sendDelayP99Ms, 0),
  ];
}

function percent(share: number): string {
  return figure(100 * share, 0);
}
