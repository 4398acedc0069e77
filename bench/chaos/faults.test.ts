import { describe, expect, it } from "vitest";
import { FAULT_KINDS, type FaultSetting, planFaults } from "./faults.ts";

const SETTING: FaultSetting = { kinds: FAULT_KINDS, engines: 8, durationMs: 120_000, seed: 1 };

describe("the faults of a run", () => {
  it("are the same for the same seed, and others for another", () => {
    expect(planFaults(SETTING)).toEqual(planFaults(SETTING));
    expect(planFaults({ ...SETTING, seed: 2 })).not.toEqual(planFaults(SETTING));
  });

  it("are of every kind within a minute and a half", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const kinds = new Set(planFaults({ ...SETTING, durationMs: 90_000, seed }).map(({ kind }) => kind));
      expect(kinds).toEqual(new Set(FAULT_KINDS));
    }
  });

  it("never strike an engine in two lanes, nor two of a lane at a time", () => {
    const faults = planFaults(SETTING);
    const lanesOf = new Map<number, Set<number>>();
    for (const { engine, lane } of faults) lanesOf.set(engine, (lanesOf.get(engine) ?? new Set()).add(lane));
    expect([...lanesOf.values()].every((lanes) => lanes.size === 1)).toBe(true);
    for (const lane of new Set(faults.map((fault) => fault.lane))) {
      const own = faults.filter((fault) => fault.lane === lane);
      for (const [index, { atMs }] of own.entries()) {
        const before = own[index - 1];
        if (before !== undefined) expect(atMs).toBeGreaterThan(before.atMs + before.durationMs);
      }
    }
  });

  it("are only of the kinds that are asked for, and end with the run", () => {
    const faults = planFaults({ ...SETTING, kinds: ["kill", "remove"], engines: 3, durationMs: 60_000 });
    expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(["kill", "remove"]));
    expect(faults.every(({ atMs, durationMs }) => atMs + durationMs <= 60_000)).toBe(true);
    expect(new Set(faults.filter(({ kind }) => kind === "kill").map(({ engine }) => engine)).size).toBeGreaterThan(1);
  });
});
