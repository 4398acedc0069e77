import { BLOCK_TOKENS, type RequestRecord, type Summary, simulate, summarize } from "../../src/sim/index.ts";
import type { CpuUse } from "../support/cpu-watch.ts";
import { type LiveRun, runLive } from "../support/live-run.ts";
import type { Served } from "../support/send-workload.ts";
import { mean } from "../support/statistics.ts";
import type { PolicyCase, Scenario } from "./scenarios.ts";

/** How scenarios are run. */
export interface FidelityPlan {
  /** By how much live time is compressed. */
  readonly speedup: number;
  /** Simulations of each policy, whose mean counts. */
  readonly simulations: number;
  /** Policies that are served live at the same time. */
  readonly atOnce: number;
  /** Folder for the files of the run. */
  readonly scratch: string;
}

/** One side of a comparison. Times are the trace's. */
export interface Figures {
  readonly ttftMs: number;
  readonly tpotMs: number;
  readonly e2eMs: number;
  /** Requests that ended. */
  readonly ended: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Share of the prompt tokens that engines found in their cache, 0 to 1. */
  readonly hitRatio: number;
  /** Share of the requests that were held, 0 to 1. */
  readonly heldRatio: number;
  readonly longestHoldMs: number;
  readonly preemptions: number;
}

/** The three that must agree. */
export const LATENCIES: readonly ["ttftMs", "tpotMs", "e2eMs"] = ["ttftMs", "tpotMs", "e2eMs"];
export type LatencyFigure = (typeof LATENCIES)[number];

/** One policy, served live and simulated. */
export interface PolicyComparison {
  readonly policy: string;
  readonly live: Figures;
  readonly simulated: Figures;
  /** Live against simulated: 0.1 is a tenth more. */
  readonly difference: Readonly<Record<LatencyFigure, number>>;
  /** Largest distance of one simulation from the mean of all: what chance alone makes. */
  readonly chance: Readonly<Record<LatencyFigure, number>>;
  /** One message per live request that failed. */
  readonly failures: readonly string[];
  readonly cpu: CpuUse;
}

/** What became of a scenario. */
export interface ScenarioResult {
  readonly name: string;
  readonly shows: Scenario["shows"];
  readonly workload: string;
  readonly fleet: string;
  readonly requests: number;
  readonly policies: readonly PolicyComparison[];
}

/** Serves and simulates a scenario under each of its policies. */
export async function runScenario(scenario: Scenario, plan: FidelityPlan): Promise<ScenarioResult> {
  const { name, shows, workload, fleet, policies } = scenario;
  const compared: PolicyComparison[] = [];
  for (let first = 0; first < policies.length; first += plan.atOnce) {
    const group = policies.slice(first, first + plan.atOnce);
    const runs = await runLive(
      group.map((policy) => ({
        workload,
        engines: fleet.engines,
        policy,
        speedup: plan.speedup,
        seed: 1,
        scratch: plan.scratch,
      })),
    );
    compared.push(...group.map((policy, i) => compare(scenario, plan, policy, runs[i] as LiveRun)));
  }
  const [one] = compared;
  const requests = one === undefined ? 0 : one.live.ended + one.failures.length;
  return { name, shows, workload: workload.name, fleet: fleet.text, requests, policies: compared };
}

function compare(scenario: Scenario, plan: FidelityPlan, policy: PolicyCase, run: LiveRun): PolicyComparison {
  const live = liveFigures(scenario, plan.speedup, run);
  const each = Array.from({ length: plan.simulations }, (_, i) => simulatedFigures(scenario, policy, i + 1));
  const simulated = meanFigures(each);
  return {
    policy: policy.label,
    live,
    simulated,
    difference: latencies((key) => live[key] / simulated[key] - 1),
    chance: latencies((key) => Math.max(...each.map((one) => Math.abs(one[key] / simulated[key] - 1)))),
    failures: run.errors,
    cpu: run.cpu,
  };
}

function liveFigures({ workload, fleet }: Scenario, speedup: number, run: LiveRun): Figures {
  const requests = run.served.map((served) => recordOf(served, speedup));
  const summary = summarize(
    {
      policy: "live",
      workload: workload.name,
      fleet: fleet.text,
      seed: 0,
      requests,
      timeline: { atMs: [], endpoints: Object.fromEntries(fleet.engines.map(({ id }) => [id, []])) },
      preemptions: run.preemptions,
      wallMs: run.elapsedMs,
    },
    NO_SLO,
  );
  return figuresOf(summary, requests);
}

/** What the client saw, as the simulator would note it. */
function recordOf(served: Served, speedup: number): RequestRecord {
  const { sentAtMs, heldMs, ttftMs, e2eMs, promptTokens, outputTokens, cachedTokens, endpoint } = served;
  const at = (afterMs: number): number => (sentAtMs + afterMs) * speedup;
  return {
    arrivedAtMs: at(0),
    sentAtMs: at(heldMs),
    firstTokenAtMs: at(ttftMs),
    endedAtMs: at(e2eMs),
    promptTokens,
    outputTokens,
    cachedTokens,
    endpoint,
    tenant: undefined,
  };
}

/**
 * @param number From 1. Each simulation draws its ties differently and sends a millisecond later than the one before:
 * what changes with that is chance, as it is live.
 */
function simulatedFigures({ workload, fleet }: Scenario, policy: PolicyCase, number: number): Figures {
  const { name, options } = policy;
  const chance = { seed: number, sendDelayMs: number };
  const result = simulate({
    workload,
    fleet,
    policy: name,
    policyOptions: options,
    blockTokens: BLOCK_TOKENS,
    ...chance,
  });
  return figuresOf(summarize(result, NO_SLO), result.requests);
}

function figuresOf(summary: Summary, requests: readonly RequestRecord[]): Figures {
  const ended = requests.filter(({ endedAtMs }) => endedAtMs !== undefined);
  const held = requests.filter(({ arrivedAtMs, sentAtMs = arrivedAtMs }) => sentAtMs - arrivedAtMs >= LEAST_HOLD_MS);
  return {
    ttftMs: summary.ttftMs?.mean ?? Number.NaN,
    tpotMs: summary.tpotMs?.mean ?? Number.NaN,
    e2eMs: summary.e2eMs?.mean ?? Number.NaN,
    ended: ended.length,
    promptTokens: ended.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    outputTokens: ended.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    hitRatio: summary.hitRatio,
    heldRatio: held.length / requests.length,
    longestHoldMs: summary.longestHoldMs,
    preemptions: summary.preemptions,
  };
}

function meanFigures(figures: readonly Figures[]): Figures {
  const of = (key: keyof Figures): number => mean(figures.map((one) => one[key]));
  return {
    ttftMs: of("ttftMs"),
    tpotMs: of("tpotMs"),
    e2eMs: of("e2eMs"),
    ended: of("ended"),
    promptTokens: of("promptTokens"),
    outputTokens: of("outputTokens"),
    hitRatio: of("hitRatio"),
    heldRatio: of("heldRatio"),
    longestHoldMs: of("longestHoldMs"),
    preemptions: of("preemptions"),
  };
}

function latencies(figure: (key: LatencyFigure) => number): Record<LatencyFigure, number> {
  return { ttftMs: figure("ttftMs"), tpotMs: figure("tpotMs"), e2eMs: figure("e2eMs") };
}

/** Goodput is not looked at. */
const NO_SLO = { ttftMs: Number.POSITIVE_INFINITY, tpotMs: Number.POSITIVE_INFINITY };

/** The balancer tells whole milliseconds. */
const LEAST_HOLD_MS = 1;
