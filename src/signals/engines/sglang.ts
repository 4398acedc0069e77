import type { EngineSignals } from "../../core/index.ts";
import type { EngineAdapter } from "../adapter.ts";
import { readHealthByStatus } from "../health-reading.ts";
import { countLabel, MetricTable, type SeriesFilter, times } from "../metric-table.ts";

/**
 * SGLang. Its `/health` runs a generation of one token, so `/ping` is probed: it shows only that the HTTP process
 * lives, and real traffic has to show the rest.
 */
export const sglang: EngineAdapter = {
  kind: "sglang",
  title: "SGLang",
  ownedBy: ["sglang", "nvidia"],
  healthPath: "/ping",
  readHealth: readHealthByStatus,
  metricsPath: "/metrics",
  metricsSwitch: "--enable-metrics",
  readSignals,
  slots: undefined,
  acceptsStreamOptions: true,
};

/** With priority scheduling there is a series per priority beside the total, whose label is empty. */
const allPriorities: SeriesFilter = (labels) => (labels.get("priority") ?? "") === "";
const decoded: SeriesFilter = (labels) => allPriorities(labels) && labels.get("mode") === "decode";

function readSignals(text: string, observedAtMs: number): EngineSignals {
  const metrics = new MetricTable(text, "sglang:");
  // With metrics for all schedulers on, every tensor-parallel rank repeats what its data-parallel rank says.
  const perRank = (...names: readonly string[]) => metrics.sumPer("dp_rank", names, allPriorities);
  const promptTokensTotal = metrics.sum(["sglang:prompt_tokens_total"], allPriorities);
  const kvBlockTokens = pageTokens(metrics);
  return {
    observedAtMs,
    runningRequests: perRank("sglang:num_running_reqs"),
    waitingRequests: perRank("sglang:num_queue_reqs"),
    maxRunningRequests: undefined,
    kvUsedRatio: metrics.fullest(["sglang:token_usage"], allPriorities),
    kvCapacityTokens: perRank("sglang:max_total_num_tokens") ?? times(pages(metrics), kvBlockTokens),
    kvBlockTokens,
    promptTokensTotal,
    // `generation_tokens_total` moves only when a request ends, so the counter of each step comes first.
    generatedTokensTotal:
      metrics.sumPer("dp_rank", ["sglang:realtime_tokens_total"], decoded) ??
      metrics.sum(["sglang:generation_tokens_total"], allPriorities),
    prefixHitTokensTotal: metrics.sum(["sglang:cached_tokens_total"], allPriorities),
    prefixQueryTokensTotal: promptTokensTotal,
    preemptionsTotal: perRank("sglang:num_retracted_requests_total"),
  };
}

/** A gauge, in older versions a label. */
function pages(metrics: MetricTable): number | undefined {
  return metrics.sumPer("dp_rank", ["sglang:num_pages"]) ?? countLabel(cacheLabels(metrics), "num_pages");
}

function pageTokens(metrics: MetricTable): number | undefined {
  return metrics.largest(["sglang:page_size"]) ?? countLabel(cacheLabels(metrics), "page_size");
}

function cacheLabels(metrics: MetricTable): ReadonlyMap<string, string> {
  return metrics.series("sglang:cache_config_info")[0]?.labels ?? new Map();
}
