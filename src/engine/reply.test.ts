import { describe, expect, it } from "vitest";
import { seededRandom } from "../core/index.ts";
import { EXACT_TOKENS, generateReply, planOutput } from "./reply.ts";
import { tokenize } from "./tokens.ts";

const FREE = { maxTokens: undefined, minTokens: 0, ignoreEos: false, naturalTokens: undefined };
const ROOM = 100_000;

describe("generateReply", () => {
  it("is one word per token, the same for the same seed", () => {
    const reply = generateReply(20, seededRandom(5));
    const text = reply.pieces.join("");
    expect(text).toMatch(/^[a-z]{3}( [a-z]{3}){19}$/);
    expect([...reply.tokens]).toEqual([...tokenize([{ text }])]);
    expect(generateReply(20, seededRandom(5))).toEqual(reply);
    expect(generateReply(20, seededRandom(6)).pieces).not.toEqual(reply.pieces);
  });

  it("can be empty", () => {
    expect(generateReply(0, seededRandom(1)).pieces).toEqual([]);
  });
});

describe("planOutput", () => {
  it.each([
    ["a small bound", { ...FREE, maxTokens: EXACT_TOKENS }, ROOM, EXACT_TOKENS],
    ["one token", { ...FREE, maxTokens: 1 }, ROOM, 1],
    ["a bound with ignore_eos", { ...FREE, maxTokens: 5000, ignoreEos: true }, ROOM, 5000],
    ["the context window with ignore_eos", { ...FREE, ignoreEos: true }, 321, 321],
    ["the context window before a bound", { ...FREE, maxTokens: 60 }, 12, 12],
    ["a bound that the minimum exceeds", { ...FREE, maxTokens: 100, minTokens: 100 }, ROOM, 100],
  ])("generates exactly up to %s", (_what, bounds, room, expected) => {
    for (let seed = 0; seed < 20; seed++) {
      expect(planOutput(bounds, room, seededRandom(seed))).toEqual({ tokens: expected, finishReason: "length" });
    }
  });

  it.each([
    ["by itself", { ...FREE, naturalTokens: 700 }, { tokens: 700, finishReason: "stop" }],
    [
      "by itself below a small bound",
      { ...FREE, naturalTokens: 7, maxTokens: 10 },
      { tokens: 7, finishReason: "stop" },
    ],
    ["at a bound", { ...FREE, naturalTokens: 700, maxTokens: 300 }, { tokens: 300, finishReason: "length" }],
    ["at the minimum", { ...FREE, naturalTokens: 7, minTokens: 9 }, { tokens: 9, finishReason: "stop" }],
    [
      "at the end of the context window",
      { ...FREE, naturalTokens: ROOM + 1 },
      { tokens: ROOM, finishReason: "length" },
    ],
  ])("ends a reply of a given length %s", (_where, bounds, expected) => {
    expect(planOutput(bounds, ROOM, seededRandom(1))).toEqual(expected);
  });

  it("never stops before the minimum", () => {
    const lengths = Array.from({ length: 200 }, (_, seed) => {
      return planOutput({ ...FREE, minTokens: 120 }, ROOM, seededRandom(seed)).tokens;
    });
    expect(Math.min(...lengths)).toBe(120);
  });

  it("says whether it stopped by itself", () => {
    const reasons = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const { tokens, finishReason } = planOutput({ ...FREE, maxTokens: 130 }, ROOM, seededRandom(seed));
      reasons.add(finishReason);
      expect(finishReason).toBe(tokens === 130 ? "length" : "stop");
      expect(tokens).toBeLessThanOrEqual(130);
    }
    expect([...reasons].sort()).toEqual(["length", "stop"]);
  });

  it("draws the lengths of real chat replies", () => {
    const random = seededRandom(1);
    const samples = 20_000;
    const lengths = Array.from({ length: samples }, () => planOutput(FREE, ROOM, random).tokens).sort((a, b) => a - b);
    const mean = lengths.reduce((sum, length) => sum + length, 0) / samples;
    // Median 129 and mean 211 of the trace. Four standard errors: 1.25 x 0.99 / sqrt(20000) of the median,
    // 1.29 / sqrt(20000) of the mean (the log-normal's relative deviation), plus rounding to whole tokens.
    expect(Math.abs((lengths[samples / 2] as number) / 129 - 1)).toBeLessThan(0.04);
    expect(Math.abs(mean / 211 - 1)).toBeLessThan(0.04);
  });
});
