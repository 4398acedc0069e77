import { describe, expect, it } from "vitest";
import { tgi } from "./tgi.ts";

const read = (...lines: readonly string[]) => tgi.readSignals(lines.join("\n"), 0);

describe("TGI signals", () => {
  it("does not know how full the cache is without its size", () => {
    expect(read("tgi_batch_current_max_tokens 100").kvUsedRatio).toBeUndefined();
    expect(read("tgi_batch_current_max_tokens 0", "tgi_batch_max_total_tokens 0").kvUsedRatio).toBeUndefined();
  });

  it("is full at the most", () => {
    expect(read("tgi_batch_current_max_tokens 300", "tgi_batch_max_total_tokens 200").kvUsedRatio).toBe(1);
  });
});
