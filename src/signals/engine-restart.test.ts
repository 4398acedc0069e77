import { describe, expect, it } from "vitest";
import { hasRestarted } from "./engine-restart.ts";
import { noSignals } from "./no-signals.ts";

const nothing = noSignals("", 0);

describe("hasRestarted", () => {
  it.each<[string, number | undefined, number | undefined, boolean]>([
    ["a counter grew", 5, 6, false],
    ["a counter stood still", 5, 5, false],
    ["a counter ran backwards", 5, 0, true],
    ["a counter is gone", 5, undefined, false],
    ["a counter is new", undefined, 0, false],
  ])("%s", (_name, before, after, expected) => {
    const signals = (promptTokensTotal: number | undefined) => ({ ...nothing, promptTokensTotal });
    expect(hasRestarted(signals(before), signals(after))).toBe(expected);
  });

  it("does not take a gauge for a counter", () => {
    expect(hasRestarted({ ...nothing, runningRequests: 5 }, { ...nothing, runningRequests: 0 })).toBe(false);
  });
});
