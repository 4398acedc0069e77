import type { EngineSignals } from "../../core/index.ts";
import type { EngineAdapter } from "../adapter.ts";
import { readHealthByStatus } from "../health-reading.ts";
import { MetricTable, shareOf } from "../metric-table.ts";

/** Hugging Face Text Generation Inference. It has no KV gauge: what its batch may grow to stands for it. */
export const tgi: EngineAdapter = {
  kind: "tgi",
  title: "Text Generation Inference",
  ownedBy: [],
  healthPath: "/health",
  readHealth: readHealthByStatus,
  metricsPath: "/metrics",
  metricsSwitch: undefined,
  readSignals,
  slots: undefined,
  acceptsStreamOptions: true,
};

function readSignals(text: string, observedAtMs: number): EngineSignals {
  const metrics = new MetricTable(text, "tgi_");
  const kvCapacityTokens = metrics.sum(["tgi_batch_max_total_tokens"]);
  return {
    observedAtMs,
    runningRequests: metrics.sum(["tgi_batch_current_size"]),
    waitingRequests: metrics.sum(["tgi_queue_size"]),
    maxRunningRequests: undefined,
    kvUsedRatio: shareOf(metrics.sum(["tgi_batch_current_max_tokens"]), kvCapacityTokens),
    kvCapacityTokens,
    kvBlockTokens: undefined,
    promptTokensTotal: metrics.sum(["tgi_request_input_length_sum"]),
    generatedTokensTotal: metrics.sum(["tgi_request_generated_tokens_sum"]),
    prefixHitTokensTotal: undefined,
    prefixQueryTokensTotal: undefined,
    preemptionsTotal: undefined,
  };
}
