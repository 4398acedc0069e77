import { describe, expect, it } from "vitest";
import type { WorkloadRequest } from "../../src/sim/index.ts";
import { WorkloadPrompts } from "./workload-prompts.ts";

const BLOCK_TOKENS = 64;
const BLOCK_BYTES = 256;

describe("WorkloadPrompts", () => {
  it.each([1, 3, 64, 1000, 130_000])("makes a prompt of %i tokens of four bytes", (promptTokens) => {
    const text = new WorkloadPrompts(BLOCK_TOKENS, 1).text(request(promptTokens));
    expect(Buffer.byteLength(text)).toBe(4 * promptTokens);
  });

  it("repeats the text of equal blocks, and none of what follows the last full one", () => {
    const prompts = new WorkloadPrompts(BLOCK_TOKENS, 1);
    const a = prompts.text(request(150, [1, 2, 3]));
    const b = prompts.text(request(150, [1, 2, 3]));
    const c = prompts.text(request(150, [1, 4, 3]));
    expect(commonBytes(a, b)).toBeGreaterThanOrEqual(2 * BLOCK_BYTES);
    expect(commonBytes(a, b)).toBeLessThan(2 * BLOCK_BYTES + 8);
    expect(commonBytes(a, c)).toBeGreaterThanOrEqual(BLOCK_BYTES);
    expect(commonBytes(a, c)).toBeLessThan(BLOCK_BYTES + 8);
  });

  it("begins no two prompts alike that share nothing", () => {
    const prompts = new WorkloadPrompts(BLOCK_TOKENS, 1);
    const openings = Array.from({ length: 2_000 }, () => prompts.text(request(100)).slice(0, 16));
    expect(new Set(openings).size).toBe(2_000);
  });

  it("makes the same prompts for the same seed, others for another", () => {
    const first = (seed: number) => new WorkloadPrompts(BLOCK_TOKENS, seed).text(request(100, [7]));
    expect(first(1)).toBe(first(1));
    expect(first(1)).not.toBe(first(2));
  });
});

function request(promptTokens: number, blockIds: readonly number[] = []): WorkloadRequest {
  return { promptTokens, blockIds, outputTokens: 1, sessionKey: undefined, tenant: undefined, next: undefined };
}

function commonBytes(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}
