import { describe, expect, it } from "vitest";
import { isSignificantlyAbove, slopeOf } from "./slope.ts";

describe("a slope", () => {
  it("is that of the line the points lie on, without error", () => {
    const slope = slopeOf([0, 1, 2, 5].map((time) => [time, 7 - 3 * time]));
    expect(slope.perUnit).toBeCloseTo(-3, 12);
    expect(slope.standardError).toBeCloseTo(0, 12);
  });

  it("has the standard error of the textbook", () => {
    // y = 1, 3, 2, 5 at 0 to 3: slope 1.1; residuals -0.1, 0.8, -1.3, 0.6 squared are 2.7; sqrt(2.7 / 2 / 5).
    const slope = slopeOf([1, 3, 2, 5].map((value, time) => [time, value]));
    expect(slope.perUnit).toBeCloseTo(1.1, 12);
    expect(slope.standardError).toBeCloseTo(Math.sqrt(0.27), 12);
  });

  it.each([
    [{ perUnit: 10, standardError: 1 }, 8, false],
    [{ perUnit: 11, standardError: 1 }, 8, true],
    [{ perUnit: -50, standardError: 1 }, 8, false],
  ])("%j is above the bound of %d only if chance does not explain it: %s", (slope, bound, expected) => {
    expect(isSignificantlyAbove(slope, bound)).toBe(expected);
  });

  it("is not trusted when there is none", () => {
    expect(isSignificantlyAbove(slopeOf([[0, 1]]), 8)).toBe(true);
  });
});
