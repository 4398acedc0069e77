import type { EngineSignals } from "../../core/index.ts";
import type { EngineAdapter } from "../adapter.ts";
import { readHealthByStatus } from "../health-reading.ts";
import { MetricTable, times } from "../metric-table.ts";

/** TensorRT-LLM (`trtllm-serve`). Its `/metrics` is JSON that reading consumes, so it is never asked for. */
export const trtllm: EngineAdapter = {
  kind: "trtllm",
  title: "TensorRT-LLM",
  ownedBy: ["tensorrt_llm"],
  healthPath: "/health",
  readHealth: readHealthByStatus,
  metricsPath: "/prometheus/metrics",
  metricsSwitch: "return_perf_metrics: true",
  readSignals,
  slots: undefined,
  acceptsStreamOptions: true,
};

function readSignals(text: string, observedAtMs: number): EngineSignals {
  const metrics = new MetricTable(text, "trtllm_");
  const promptTokensTotal = metrics.sum(["trtllm_prompt_tokens_total"]);
  const prefixHitTokensTotal = metrics.sum(["trtllm_prompt_cached_tokens_total"]);
  const kvBlockTokens = metrics.largest(["trtllm_kv_cache_tokens_per_block"]);
  return {
    observedAtMs,
    runningRequests: metrics.sum(["trtllm_num_requests_running"]),
    waitingRequests: metrics.sum(["trtllm_num_requests_waiting"]),
    maxRunningRequests: undefined,
    kvUsedRatio: metrics.fullest(["trtllm_kv_cache_utilization"]),
    kvCapacityTokens: times(metrics.sum(["trtllm_kv_cache_max_blocks"]), kvBlockTokens),
    kvBlockTokens,
    promptTokensTotal,
    generatedTokensTotal: metrics.sum(["trtllm_generation_tokens_total"]),
    prefixHitTokensTotal,
    prefixQueryTokensTotal: prefixHitTokensTotal === undefined ? undefined : promptTokensTotal,
    preemptionsTotal: undefined,
  };
}
