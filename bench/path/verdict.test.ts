import { describe, expect, it } from "vitest";
import { verdictText } from "./verdict.ts";

describe("verdictText", () => {
  it("says met, missed and not measured, each beside its figure", () => {
    const text = verdictText([
      { measure: "CPU per request", target: "at most 3 x nginx", measured: "2.50 x", isMet: true },
      { measure: "CPU per event", target: "below envoy", measured: "1.20 x", isMet: false },
      { measure: "start", target: "at most 0.5 s", measured: "-", isMet: undefined },
    ]);
    expect(
      text
        .split("\n")
        .slice(2)
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ["CPU per request: at most 3 x nginx", "2.50 x", "met"],
      ["CPU per event: below envoy", "1.20 x", "missed"],
      ["start: at most 0.5 s", "-", "not measured"],
    ]);
  });
});
