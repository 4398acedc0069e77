import { mean, quantile } from "../../../bench/support/statistics.ts";
import type { Sample } from "../../support/metric-samples.ts";
import { type LoadAnswer, type LoadRequest, runLoad } from "./chat-load.ts";
import { Serve } from "./serve.ts";
import type { VllmServer } from "./vllm-server.ts";

/** One load through one balancer, as clients and engines saw it. Times in ms. */
export interface FleetRun {
  readonly answers: readonly LoadAnswer[];
  readonly failures: number;
  /** Times that an engine threw a running request out of its KV cache, to compute it again later. */
  readonly preemptions: number;
  readonly tokensPerSecond: number;
  readonly holds: number;
  /** An upper bound, as exact as the buckets of the metric; 0: none was held. */
  readonly longestHoldSeconds: number;
}

/** Runs `load` through `evenkeel serve` with `flags` in front of `engines`, and leaves them idle. */
export async function runFleet(
  engines: readonly VllmServer[],
  flags: readonly string[],
  load: readonly LoadRequest[],
): Promise<FleetRun> {
  const urls = engines.map(({ url }) => url);
  const serve = await Serve.start(urls, flags);
  try {
    const preempted = await total(engines, "num_preemptions_total");
    const startMs = performance.now();
    const answers = await runLoad(serve.url, load);
    const seconds = (performance.now() - startMs) / 1000;
    const samples = await serve.samples();
    return {
      answers,
      failures: answers.filter(({ isWhole }) => !isWhole).length,
      preemptions: (await total(engines, "num_preemptions_total")) - preempted,
      tokensPerSecond: answers.reduce((sum, { outputTokens }) => sum + outputTokens, 0) / seconds,
      holds: await serve.metric("holds_total"),
      longestHoldSeconds: longestHold(samples),
    };
  } finally {
    await serve.stop();
    while ((await total(engines, "num_requests_running")) + (await total(engines, "num_requests_waiting")) > 0) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Latencies of one run, or of several taken together. */
export interface Latencies {
  readonly ttftMs: number;
  readonly shortTtftMs: number;
  readonly longTtftMs: number;
  readonly longTtftP99Ms: number;
  readonly totalMs: number;
}

export function latenciesOf(runs: readonly FleetRun[]): Latencies {
  const answers = runs.flatMap((run) => run.answers);
  const ttfts = (isLong: boolean): number[] =>
    answers.filter((answer) => answer.isLong === isLong).map(({ ttftMs }) => ttftMs);
  return {
    ttftMs: mean(answers.map(({ ttftMs }) => ttftMs)),
    shortTtftMs: mean(ttfts(false)),
    longTtftMs: mean(ttfts(true)),
    longTtftP99Ms: quantile(ttfts(true), 0.99),
    totalMs: mean(answers.map(({ totalMs }) => totalMs)),
  };
}

async function total(engines: readonly VllmServer[], metric: string): Promise<number> {
  const values = await Promise.all(engines.map((engine) => engine.metric(metric)));
  return values.reduce((sum, value) => sum + value, 0);
}

/** The bound of the first bucket that has them all. */
function longestHold(samples: readonly Sample[]): number {
  const counts = new Map<number, number>();
  for (const { name, labels, value } of samples) {
    if (name !== "evenkeel_hold_duration_seconds_bucket") continue;
    const bound = labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  const all = Math.max(0, ...counts.values());
  return all === 0 ? 0 : Math.min(...[...counts].filter(([, count]) => count === all).map(([bound]) => bound));
}
