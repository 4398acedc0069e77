import { describe, expect, it } from "vitest";
import { verdictOf } from "./measure.ts";

describe("verdictOf", () => {
  it("holds a figure against the most it may be", () => {
    expect(verdictOf("start", 0.4567, 0.5, "s")).toEqual({
      measure: "start",
      target: "at most 0.5 s",
      measured: "0.457 s",
      isMet: true,
    });
    expect(verdictOf("start", 0.51, 0.5, "s").isMet).toBe(false);
  });

  it("judges nothing that was not measured", () => {
    for (const value of [undefined, Number.NaN]) {
      expect(verdictOf("start", value, 0.5, "s")).toMatchObject({ measured: "-", isMet: undefined });
    }
  });
});
