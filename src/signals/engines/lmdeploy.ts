import type { EngineSignals } from "../../core/index.ts";
import type { EngineAdapter, HealthReading } from "../adapter.ts";
import { readHealthByMember } from "../health-reading.ts";
import { parseJson } from "../json.ts";
import { MetricTable, withExtra } from "../metric-table.ts";

/** LMDeploy. Requests wait in two places: for a handle of the API server, then in the engine. */
export const lmdeploy: EngineAdapter = {
  kind: "lmdeploy",
  title: "LMDeploy",
  ownedBy: ["lmdeploy"],
  healthPath: "/health",
  readHealth,
  metricsPath: "/metrics",
  metricsSwitch: undefined,
  readSignals,
  slots: undefined,
  acceptsStreamOptions: true,
};

/** Asleep it answers 200 as well, so the body decides. */
function readHealth(status: number, body: string): HealthReading {
  if (status !== 401 && status !== 403) {
    const state = parseJson(body)?.status;
    if (state === "sleeping" || state === "initializing") return { kind: "loading", reason: `says it is ${state}` };
    if (state === "unhealthy") return { kind: "failed", reason: "says it is unhealthy" };
  }
  return readHealthByMember(status, body, "status");
}

function readSignals(text: string, observedAtMs: number): EngineSignals {
  const metrics = new MetricTable(text, "lmdeploy:");
  return {
    observedAtMs,
    runningRequests: metrics.sum(["lmdeploy:num_requests_running"]),
    waitingRequests: withExtra(
      metrics.sum(["lmdeploy:num_requests_waiting"]),
      metrics.sum(["lmdeploy:num_api_requests_waiting"]),
    ),
    maxRunningRequests: undefined,
    kvUsedRatio: metrics.fullest(["lmdeploy:gpu_cache_usage_perc"]),
    kvCapacityTokens: undefined,
    kvBlockTokens: undefined,
    promptTokensTotal: metrics.sum(["lmdeploy:prompt_tokens_total"]),
    generatedTokensTotal: metrics.sum(["lmdeploy:generation_tokens_total"]),
    // The hit rate is a gauge over an unknown window: it has no place among counters.
    prefixHitTokensTotal: undefined,
    prefixQueryTokensTotal: undefined,
    preemptionsTotal: undefined,
  };
}
