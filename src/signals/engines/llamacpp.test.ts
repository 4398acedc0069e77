import { describe, expect, it } from "vitest";
import { llamacpp } from "./llamacpp.ts";

const read = (...lines: readonly string[]) => llamacpp.readSignals(lines.join("\n"), 0);

describe("llama.cpp slots", () => {
  it.each([
    ['{"total_slots":4,"model_path":"m.gguf"}', 4],
    ['{"total_slots":0}', undefined],
    ['{"total_slots":"4"}', undefined],
    ['{"total_slots":1.5}', undefined],
    ["{}", undefined],
    ["<html></html>", undefined],
  ])("of %s are %s", (body, slots) => {
    expect(llamacpp.slots?.readSlots(body)).toBe(slots);
  });
});

describe("llama.cpp signals", () => {
  it("does not invent cache figures for a version that reports none", () => {
    expect(read("llamacpp:prompt_tokens_total 70")).toMatchObject({
      promptTokensTotal: 70,
      prefixHitTokensTotal: undefined,
      prefixQueryTokensTotal: undefined,
    });
  });

  it("reads the KV gauge of older versions", () => {
    expect(read("llamacpp:kv_cache_usage_ratio 0.5").kvUsedRatio).toBe(0.5);
  });
});
