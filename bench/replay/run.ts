import { type EngineSpec, parseFleet, type Workload } from "../../src/sim/index.ts";
import type { CpuUse } from "../support/cpu-watch.ts";
import { type LiveRun, runLive } from "../support/live-run.ts";
import type { Served } from "../support/send-workload.ts";
import { mean, quantile, sum } from "../support/statistics.ts";

/** Steps of 30 ms and more: long against the clock of a compressed replay. */
export const PROFILE = "llama70b-tp4-a100";

/**
 * Speeds of the four engines, relative to the profile. At speed 1 the profile bears 3.4 of the trace's requests per
 * second (1,170 prompt and 250 output tokens on the mean) with 80 ms per token; these four bear 6.9 together, and
 * the trace brings 4.9 on the mean and 5.9 in its busiest minute: 72 and 86 %.
 */
export const SPEEDS: readonly number[] = [0.65, 0.55, 0.45, 0.35];

const ENGINES: readonly EngineSpec[] = parseFleet(SPEEDS.map((speed) => `${PROFILE}@${speed}`).join(",")).engines;

/** What is replayed, and how. */
export interface ReplayPlan {
  readonly trace: Workload;
  /** By how much time is compressed. */
  readonly speedup: number;
  /** Of the prompts. */
  readonly seed: number;
  /** Folder for the files of the run. */
  readonly scratch: string;
}

/** One policy's replay. Times are the trace's: as measured, times the speed-up. */
export interface PolicyResult {
  readonly policy: string;
  readonly requests: number;
  readonly failures: number;
  /** Each kind of failure once, with its count. */
  readonly problems: Readonly<Record<string, number>>;
  readonly ttftMs: { readonly mean: number; readonly p50: number; readonly p90: number; readonly p99: number };
  /** Time per output token after the first. */
  readonly tpotMs: { readonly p50: number; readonly p99: number };
  readonly e2eMs: { readonly mean: number; readonly p99: number };
  readonly spread: Spread;
  /** Requests in flight on the mean. */
  readonly inFlight: number;
  /** How late the client itself sent, 99th percentile. */
  readonly sendDelayP99Ms: number;
  readonly cpu: CpuUse;
}

/** Who got how much. */
interface Spread {
  readonly endpoints: readonly EndpointShare[];
  /** Work per speed of the endpoint that got most, against the mean: 1 is proportional to speed. */
  readonly maxToMean: number;
}

interface EndpointShare {
  readonly speed: number;
  /** 0 to 1. */
  readonly requests: number;
  /** Prompt and output tokens, 0 to 1. */
  readonly tokens: number;
}

/** Work of a prompt token against that of an output token, as in the token-aware rule. */
const PROMPT_WORK = 0.1;

/** Replays the trace once, through a fresh balancer with `policy` and fresh engines. */
export async function replayPolicy(plan: ReplayPlan, policy: string): Promise<PolicyResult> {
  const choice = { name: policy, options: {} };
  const [run] = await runLive([{ ...plan, workload: plan.trace, engines: ENGINES, policy: choice }]);
  return summary(plan, policy, run as LiveRun);
}

function summary({ trace, speedup }: ReplayPlan, policy: string, run: LiveRun): PolicyResult {
  const { served, errors, sendDelaysMs, elapsedMs, cpu } = run;
  const ttfts = served.map(({ ttftMs }) => ttftMs * speedup);
  const e2es = served.map(({ e2eMs }) => e2eMs * speedup);
  const tpots = served
    .filter(({ outputTokens }) => outputTokens > 1)
    .map(({ ttftMs, e2eMs, outputTokens }) => ((e2eMs - ttftMs) * speedup) / (outputTokens - 1));
  return {
    policy,
    requests: trace.arrivals.length,
    failures: errors.length,
    problems: counted(errors),
    ttftMs: { mean: mean(ttfts), p50: quantile(ttfts, 0.5), p90: quantile(ttfts, 0.9), p99: quantile(ttfts, 0.99) },
    tpotMs: { p50: quantile(tpots, 0.5), p99: quantile(tpots, 0.99) },
    e2eMs: { mean: mean(e2es), p99: quantile(e2es, 0.99) },
    spread: spreadOf(served),
    inFlight: sum(served.map(({ e2eMs }) => e2eMs)) / elapsedMs,
    sendDelayP99Ms: quantile(sendDelaysMs, 0.99) * speedup,
    cpu,
  };
}

function spreadOf(served: readonly Served[]): Spread {
  const tokens = (requests: readonly Served[], promptWeight: number): number =>
    sum(requests.map(({ promptTokens, outputTokens }) => promptWeight * promptTokens + outputTokens));
  const shares = ENGINES.map(({ id, speed }) => {
    const own = served.filter(({ endpoint }) => endpoint === id);
    return {
      speed,
      requests: own.length / served.length,
      tokens: tokens(own, 1) / tokens(served, 1),
      load: tokens(own, PROMPT_WORK) / speed,
    };
  });
  const loads = shares.map(({ load }) => load);
  return {
    endpoints: shares.map(({ load: _, ...share }) => share),
    maxToMean: Math.max(...loads) / mean(loads),
  };
}

function counted(messages: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const message of messages) counts[message] = (counts[message] ?? 0) + 1;
  return counts;
}
