import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_HOLDING_LIMITS, type LateBinding, policyDefinitions } from "../../src/core/index.ts";
import { anyFleet, anyRequest, fleetIn, snapshot } from "../support/any-fleet.ts";

const BINDINGS = policyDefinitions.flatMap(({ name, options, create }): (readonly [string, LateBinding])[] => {
  const { lateBinding } = create(options.parse({}));
  return lateBinding === undefined ? [] : [[name, lateBinding]];
});

describe.each(BINDINGS)("late binding of %s", (_name, lateBinding) => {
  it("lets an idle endpoint begin on anything", () => {
    fc.assert(
      fc.property(anyFleet, anyRequest, fc.nat(), (states, asked, nowMs) => {
        const { candidates } = fleetIn(states.map((state) => ({ ...state, running: 0, waiting: 0 })));
        for (const candidate of candidates) expect(lateBinding.canBegin(asked, candidate, nowMs)).toBe(true);
      }),
      { seed: 1, numRuns: 200 },
    );
  });

  it("lets an endpoint begin only on what it has memory for, and changes nothing by it", () => {
    fc.assert(
      fc.property(anyFleet, anyRequest, fc.nat(), (states, asked, nowMs) => {
        const fleet = fleetIn(states);
        const before = snapshot(fleet);
        for (const candidate of fleet.candidates) {
          if (lateBinding.canBegin(asked, candidate, nowMs)) expect(lateBinding.fits(asked, candidate)).toBe(true);
        }
        expect(snapshot(fleet)).toEqual(before);
      }),
      { seed: 1, numRuns: 200 },
    );
  });

  it("lets nobody overtake an equal that came before it, nor hold one back for ever", () => {
    fc.assert(
      fc.property(anyFleet, anyRequest, fc.nat(), fc.nat(), (states, asked, arrivedAtMs, laterMs) => {
        for (const candidate of fleetIn(states).candidates) {
          const key = lateBinding.holdKey(asked, candidate, arrivedAtMs);
          expect(key).toSatisfy(Number.isFinite);
          expect(key).toBeGreaterThanOrEqual(arrivedAtMs);
          expect(lateBinding.holdKey(asked, candidate, arrivedAtMs + laterMs)).toBeGreaterThanOrEqual(key);
          expect(key - arrivedAtMs).toBeLessThanOrEqual(DEFAULT_HOLDING_LIMITS.maxWaitMs);
        }
      }),
      { seed: 1, numRuns: 200 },
    );
  });
});
