import { describe, expect, it } from "vitest";
import { readVllmSignals } from "./vllm.ts";

const read = (...lines: readonly string[]) => readVllmSignals(lines.join("\n"), 0);

describe("vLLM signals", () => {
  it("reads the names of versions before 0.9", () => {
    const signals = read(
      "vllm:gpu_cache_usage_perc 0.5",
      "vllm:gpu_prefix_cache_hits_total 10",
      "vllm:gpu_prefix_cache_queries_total 20",
    );
    expect(signals).toMatchObject({ kvUsedRatio: 0.5, prefixHitTokensTotal: 10, prefixQueryTokensTotal: 20 });
  });

  it("prefers the new name where a version shows both", () => {
    expect(read("vllm:gpu_cache_usage_perc 0.5", "vllm:kv_cache_usage_perc 0.25").kvUsedRatio).toBe(0.25);
  });

  it("adds the queues and caches of data-parallel ranks and takes the fullest cache", () => {
    const signals = read(
      'vllm:num_requests_running{engine="0"} 1',
      'vllm:num_requests_running{engine="1"} 2',
      'vllm:num_requests_waiting{engine="0"} 0',
      'vllm:num_requests_waiting{engine="1"} 5',
      'vllm:kv_cache_usage_perc{engine="0"} 0.9',
      'vllm:kv_cache_usage_perc{engine="1"} 0.1',
      'vllm:cache_config_info{engine="0",block_size="16",num_gpu_blocks="101"} 1',
      'vllm:cache_config_info{engine="1",block_size="16",num_gpu_blocks="201"} 1',
    );
    expect(signals).toMatchObject({
      runningRequests: 3,
      waitingRequests: 5,
      kvUsedRatio: 0.9,
      kvCapacityTokens: 300 * 16,
      kvBlockTokens: 16,
    });
  });

  it("does not know the capacity before the engine has sized its cache", () => {
    const unsized = { kvCapacityTokens: undefined, kvBlockTokens: 16 };
    expect(read('vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1')).toMatchObject(unsized);
    expect(read('vllm:cache_config_info{block_size="16"} 1')).toMatchObject(unsized);
  });
});
