import { mean, quantile, sum } from "../support/statistics.ts";
import { type Answer, ReplayClient } from "./client.ts";
import { type CpuUse, CpuWatch } from "./cpu-watch.ts";
import { Fleet } from "./fleet.ts";
import { Prompts } from "./prompts.ts";
import type { TraceRequest } from "./trace.ts";

/** What is replayed, and how. */
export interface ReplayPlan {
  readonly trace: readonly TraceRequest[];
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

/** A request that was answered. */
interface Served extends Answer {
  readonly request: TraceRequest;
}

/** Work of a prompt token against that of an output token, as in the token-aware rule. */
const PROMPT_WORK = 0.1;

/** Replays the trace once, through a fresh balancer with `policy` and fresh engines. */
export async function replayPolicy(plan: ReplayPlan, policy: string): Promise<PolicyResult> {
  const fleet = await Fleet.start(policy, plan.speedup, plan.scratch);
  const client = new ReplayClient(fleet.origin);
  const watch = new CpuWatch(fleet.processes);
  try {
    const outcome = await sendAll(plan, client);
    fleet.assertRunning();
    return summary(plan, policy, fleet, outcome, watch.stop());
  } finally {
    watch.stop();
    await client.close();
    await fleet.stop();
  }
}

interface Outcome {
  readonly served: readonly Served[];
  readonly errors: readonly string[];
  readonly sendDelaysMs: readonly number[];
  readonly elapsedMs: number;
}

/** Open loop: requests leave at the trace's own gaps, whatever became of those before. */
async function sendAll({ trace, speedup, seed }: ReplayPlan, client: ReplayClient): Promise<Outcome> {
  const prompts = new Prompts(seed);
  const served: Served[] = [];
  const errors: string[] = [];
  const sendDelaysMs: number[] = [];
  const pending: Promise<void>[] = [];
  const startMs = performance.now();
  for (const request of trace) {
    const { promptTokens, outputTokens } = request;
    const prompt = prompts.next(promptTokens);
    const dueMs = startMs + request.arrivalMs / speedup;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    sendDelaysMs.push(performance.now() - dueMs);
    pending.push(
      client.ask({ prompt, promptTokens, outputTokens }).then(
        (answer) => void served.push({ ...answer, request }),
        (error: Error) => void errors.push(error.message),
      ),
    );
  }
  await Promise.all(pending);
  return { served, errors, sendDelaysMs, elapsedMs: performance.now() - startMs };
}

function summary(plan: ReplayPlan, policy: string, fleet: Fleet, outcome: Outcome, cpu: CpuUse): PolicyResult {
  const { served, errors, sendDelaysMs, elapsedMs } = outcome;
  const { speedup } = plan;
  const ttfts = served.map(({ ttftMs }) => ttftMs * speedup);
  const e2es = served.map(({ e2eMs }) => e2eMs * speedup);
  const tpots = served
    .filter(({ request }) => request.outputTokens > 1)
    .map(({ ttftMs, e2eMs, request }) => ((e2eMs - ttftMs) * speedup) / (request.outputTokens - 1));
  return {
    policy,
    requests: plan.trace.length,
    failures: errors.length,
    problems: counted(errors),
    ttftMs: { mean: mean(ttfts), p50: quantile(ttfts, 0.5), p90: quantile(ttfts, 0.9), p99: quantile(ttfts, 0.99) },
    tpotMs: { p50: quantile(tpots, 0.5), p99: quantile(tpots, 0.99) },
    e2eMs: { mean: mean(e2es), p99: quantile(e2es, 0.99) },
    spread: spreadOf(fleet, served),
    inFlight: sum(served.map(({ e2eMs }) => e2eMs)) / elapsedMs,
    sendDelayP99Ms: quantile(sendDelaysMs, 0.99) * speedup,
    cpu,
  };
}

function spreadOf(fleet: Fleet, served: readonly Served[]): Spread {
  const tokens = (requests: readonly Served[], promptWeight: number): number =>
    sum(requests.map(({ request }) => promptWeight * request.promptTokens + request.outputTokens));
  const shares = fleet.engines.map(({ id, speed }) => {
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
