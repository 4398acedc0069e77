import { describe, expect, it } from "vitest";
import { fixedOutput, MIN_REMAINING_TOKENS } from "./output-expectation.ts";

describe("fixedOutput", () => {
  it("falls by what was generated, down to the floor and never below", () => {
    const { remainingAfter } = fixedOutput(100);
    expect([0, 1, 50, 96, 100, 5000].map(remainingAfter)).toEqual([100, 99, 50, 4, 4, 4]);
    expect(MIN_REMAINING_TOKENS).toBe(4);
  });

  it("expects whole tokens of a fractional mean", () => {
    expect(fixedOutput(10.4).remainingAfter(0)).toBe(10);
  });

  it.each([0, -1])("expects nothing at all of a mean of %d", (mean) => {
    expect(fixedOutput(mean).meanTokens).toBe(0);
    expect(fixedOutput(mean).remainingAfter(0)).toBe(0);
  });
});
