import { describe, expect, it } from "vitest";
import { sglang } from "./sglang.ts";

const read = (...lines: readonly string[]) => sglang.readSignals(lines.join("\n"), 0);

describe("SGLang signals", () => {
  it("adds data-parallel ranks, and counts each once though every tensor-parallel rank reports", () => {
    const signals = read(
      'sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 3',
      'sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 3',
      'sglang:num_running_reqs{dp_rank="1",tp_rank="2"} 4',
      'sglang:num_running_reqs{dp_rank="1",tp_rank="3"} 4',
    );
    expect(signals.runningRequests).toBe(7);
  });

  it("takes the total, not the series of each priority", () => {
    expect(read('sglang:num_queue_reqs{priority=""} 5', 'sglang:num_queue_reqs{priority="1"} 2').waitingRequests).toBe(
      5,
    );
  });

  it("prefers the token counter that moves with each step", () => {
    const signals = read(
      "sglang:generation_tokens_total 100",
      'sglang:realtime_tokens_total{mode="decode"} 130',
      'sglang:realtime_tokens_total{mode="prefill_compute"} 900',
    );
    expect(signals.generatedTokensTotal).toBe(130);
  });

  it.each<[string, readonly string[], number | undefined, number | undefined]>([
    ["the gauges", ["sglang:max_total_num_tokens 1000", "sglang:num_pages 1", "sglang:page_size 1"], 1000, 1],
    ["pages and their size", ["sglang:num_pages 50", "sglang:page_size 64"], 3200, 64],
    ["labels of an older version", ['sglang:cache_config_info{num_pages="10",page_size="16"} 1'], 160, 16],
    ["nothing", ["sglang:num_pages 50"], undefined, undefined],
  ])("reads the KV capacity and the size of a page from %s", (_name, lines, kvCapacityTokens, kvBlockTokens) => {
    expect(read(...lines)).toMatchObject({ kvCapacityTokens, kvBlockTokens });
  });
});
