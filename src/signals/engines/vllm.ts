import type { EngineSignals } from "../../core/index.ts";
import type { EngineAdapter } from "../adapter.ts";
import { readHealthByStatus } from "../health-reading.ts";
import { countLabel, MetricTable, times } from "../metric-table.ts";

/** vLLM (V1 engine). One process may report several data-parallel ranks, told apart by the label `engine`. */
export const vllm: EngineAdapter = {
  kind: "vllm",
  title: "vLLM",
  ownedBy: ["vllm"],
  healthPath: "/health",
  readHealth: readHealthByStatus,
  metricsPath: "/metrics",
  metricsSwitch: undefined,
  readSignals: readVllmSignals,
  slots: undefined,
  acceptsStreamOptions: true,
};

/** Also the names of the built-in engine. */
export function readVllmSignals(text: string, observedAtMs: number): EngineSignals {
  const metrics = new MetricTable(text, "vllm:");
  return {
    observedAtMs,
    runningRequests: metrics.sum(["vllm:num_requests_running"]),
    waitingRequests: metrics.sum(["vllm:num_requests_waiting"]),
    maxRunningRequests: undefined,
    kvUsedRatio: metrics.fullest(["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"]),
    kvCapacityTokens: kvCapacityTokens(metrics),
    kvBlockTokens: kvBlockTokens(metrics),
    promptTokensTotal: metrics.sum(["vllm:prompt_tokens_total"]),
    generatedTokensTotal: metrics.sum(["vllm:generation_tokens_total"]),
    prefixHitTokensTotal: metrics.sum(["vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"]),
    prefixQueryTokensTotal: metrics.sum(["vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"]),
    preemptionsTotal: metrics.sum(["vllm:num_preemptions_total"]),
  };
}

/** Every cache setting is a label of one series per rank. One block is reserved as the null block. */
function kvCapacityTokens(metrics: MetricTable): number | undefined {
  let total: number | undefined;
  for (const { labels } of metrics.series("vllm:cache_config_info")) {
    const blocks = countLabel(labels, "num_gpu_blocks");
    const tokens = times(blocks === undefined ? undefined : blocks - 1, countLabel(labels, "block_size"));
    if (tokens !== undefined) total = (total ?? 0) + tokens;
  }
  return total;
}

/** The same on every rank, and known before the engine has sized its cache. */
function kvBlockTokens(metrics: MetricTable): number | undefined {
  const [series] = metrics.series("vllm:cache_config_info");
  return series && countLabel(series.labels, "block_size");
}
