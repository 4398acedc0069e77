import { describe, expect, it } from "vitest";
import { comparison } from "./compare.ts";

function rows(text: string): string[][] {
  return text
    .split("\n")
    .slice(2)
    .map((line) => line.split(/ {2,}/));
}

describe("comparison", () => {
  it("says what each count changed by", () => {
    const text = comparison({ bytes: 11_000, calls: 4.5 }, { bytes: 10_000, calls: 5 });
    expect(rows(text)).toEqual([
      ["bytes", "10000", "11000", "+10.0 %"],
      ["calls", "5", "4.5", "-10.0 %"],
    ]);
  });

  it("has no change where one of the two is missing", () => {
    expect(rows(comparison({ fresh: 1, uncounted: undefined }, { uncounted: 2 }))).toEqual([
      ["fresh", "-", "1", "-"],
      ["uncounted", "2", "-", "-"],
    ]);
  });
});
