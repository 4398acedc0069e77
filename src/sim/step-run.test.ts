import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StepRun } from "./step-run.ts";

describe("StepRun", () => {
  it("ends after its steps, each longer than the one before", () => {
    expect(new StepRun(1000, 10, 2, 3).endMs).toBe(1000 + 10 + 12 + 14);
  });

  it.each([
    [0, 0],
    [1010, 0],
    [1010.5, 1],
    [1022, 1],
    [1023, 2],
    [1e9, 2],
  ])("has, before %s ms, ended %s of its steps, the last one aside", (nowMs, steps) => {
    expect(new StepRun(1000, 10, 2, 3).stepsBefore(nowMs)).toBe(steps);
  });

  it("ends earlier where it is cut, never later", () => {
    const run = new StepRun(1000, 10, 2, 3);
    run.cutTo(5);
    expect(run.steps).toBe(3);
    run.cutTo(2);
    expect([run.steps, run.endMs]).toEqual([2, 1022]);
  });

  it("finds the step in progress as a count would, over long runs and long times", () => {
    const ms = (max: number): fc.Arbitrary<number> => fc.double({ min: 0, max, noNaN: true });
    fc.assert(
      fc.property(
        ms(1e9),
        ms(100),
        ms(0.1),
        fc.integer({ min: 1, max: 3000 }),
        ms(1),
        (start, extra, growth, steps, at) => {
          const run = new StepRun(start, 1 + extra, growth, steps);
          const nowMs = start + at * (run.endMs - start);
          let endMs = start;
          let ended = 0;
          while (ended < steps - 1 && endMs + 1 + extra + growth * ended < nowMs) endMs += 1 + extra + growth * ended++;
          // Summed up one by one, ends come out a little different: only the step next to `nowMs` can be in doubt.
          const nextMs = endMs + 1 + extra + growth * ended;
          const isInDoubt = Math.min(Math.abs(nextMs - nowMs), Math.abs(endMs - nowMs)) < 1e-3;
          expect(Math.abs(run.stepsBefore(nowMs) - ended)).toBeLessThanOrEqual(isInDoubt ? 1 : 0);
        },
      ),
      { seed: 9 },
    );
  });
});
