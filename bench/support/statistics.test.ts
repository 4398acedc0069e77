import { describe, expect, it } from "vitest";
import { median, quantile } from "./statistics.ts";

describe("quantile", () => {
  it.each([
    [[7], 0.99, 7],
    [[3, 1, 2], 0, 1],
    [[3, 1, 2], 1, 3],
    [[10, 20], 0.25, 12.5],
  ])("of %j at %d is %d", (values, share, expected) => {
    expect(quantile(values, share)).toBe(expected);
  });

  it("is not a number where there are no values", () => {
    expect(quantile([], 0.5)).toBeNaN();
  });
});

describe("median", () => {
  it("is the middle of an odd number of values, and halfway between the middle two of an even one", () => {
    expect([median([5, 1, 3]), median([1, 2, 3, 10])]).toEqual([3, 2.5]);
  });
});
