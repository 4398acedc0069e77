import { BLOCK_TOKENS } from "../sim/index.ts";
import type { Engine } from "./engine.ts";

export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The engine's state under vLLM's metric names, as Prometheus text. */
export function metricsText(engine: Engine): string {
  const signals = engine.driver.signals();
  const labels = `model_name=${quoted(engine.model)},engine="0"`;
  const lines: string[] = [];
  const family = (name: string, type: "gauge" | "counter", help: string): void => {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  };
  const metric = (name: string, type: "gauge" | "counter", help: string, value: number | undefined): void => {
    family(name, type, help);
    lines.push(`${name}{${labels}} ${value ?? 0}`);
  };

  metric("vllm:num_requests_running", "gauge", "Requests in the running batch.", signals.runningRequests);
  metric("vllm:num_requests_waiting", "gauge", "Requests waiting for a place in it.", signals.waitingRequests);
  metric("vllm:kv_cache_usage_perc", "gauge", "KV cache in use, 1 is full.", signals.kvUsedRatio);
  metric("vllm:prompt_tokens_total", "counter", "Prompt tokens of prefilled requests.", signals.promptTokensTotal);
  metric("vllm:generation_tokens_total", "counter", "Tokens generated.", signals.generatedTokensTotal);
  metric("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up.", signals.prefixQueryTokensTotal);
  metric("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found cached.", signals.prefixHitTokensTotal);
  metric("vllm:num_preemptions_total", "counter", "Requests preempted for lack of KV.", signals.preemptionsTotal);

  family("vllm:request_success_total", "counter", "Requests by how they ended.");
  for (const [reason, count] of Object.entries(engine.finishCounts)) {
    lines.push(`vllm:request_success_total{${labels},finished_reason="${reason}"} ${count}`);
  }

  family("vllm:cache_config_info", "gauge", "KV cache configuration.");
  // vLLM keeps one block back as its null block, and readers subtract it.
  const blocks = engine.driver.totalBlocks + 1;
  const config = `block_size="${BLOCK_TOKENS}",num_gpu_blocks="${blocks}",enable_prefix_caching="True",engine="0"`;
  lines.push(`vllm:cache_config_info{${config}} 1`);
  return `${lines.join("\n")}\n`;
}

function quoted(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"')}"`;
}
