import type { EngineSignals } from "../../core/index.ts";
import type { EngineAdapter } from "../adapter.ts";
import { readHealthByMember } from "../health-reading.ts";
import { parseJson } from "../json.ts";
import { MetricTable, withExtra } from "../metric-table.ts";

/**
 * llama.cpp's server. While a model loads, every path answers 503. Its KV size is not to be had: slots times context
 * per slot counts a unified cache several times over.
 */
export const llamacpp: EngineAdapter = {
  kind: "llamacpp",
  title: "llama.cpp",
  ownedBy: ["llamacpp"],
  healthPath: "/health",
  readHealth: (status, body) => readHealthByMember(status, body, "status"),
  metricsPath: "/metrics",
  metricsSwitch: "--metrics",
  readSignals,
  slots: { path: "/props", readSlots },
  acceptsStreamOptions: true,
};

function readSlots(body: string): number | undefined {
  const slots = parseJson(body)?.total_slots;
  return typeof slots === "number" && Number.isSafeInteger(slots) && slots > 0 ? slots : undefined;
}

function readSignals(text: string, observedAtMs: number): EngineSignals {
  const metrics = new MetricTable(text, "llamacpp:");
  // The prompt counter leaves out what came from the cache; the cached one is newer.
  const cached = metrics.sum(["llamacpp:prompt_tokens_cached_total"]);
  const prompt = withExtra(metrics.sum(["llamacpp:prompt_tokens_total"]), cached);
  return {
    observedAtMs,
    runningRequests: metrics.sum(["llamacpp:requests_processing"]),
    waitingRequests: metrics.sum(["llamacpp:requests_deferred"]),
    maxRunningRequests: undefined,
    kvUsedRatio: metrics.fullest(["llamacpp:kv_cache_usage_ratio"]),
    kvCapacityTokens: undefined,
    kvBlockTokens: undefined,
    promptTokensTotal: prompt,
    generatedTokensTotal: metrics.sum(["llamacpp:tokens_predicted_total"]),
    prefixHitTokensTotal: cached,
    prefixQueryTokensTotal: cached === undefined ? undefined : prompt,
    preemptionsTotal: undefined,
  };
}
