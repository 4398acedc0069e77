import { describe, expect, it } from "vitest";
import { decodeStepMs, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";

describe("one engine iteration", () => {
  it("takes 45 ms more for 2,048 prompt tokens on the prior, as measured on an H100", () => {
    // The kernel tables behind the prior give 45.6 ms for the whole step, 7 % either way.
    const stepMs = prefillMs(PRIOR_COEFFICIENTS, 2048, 2048 ** 2 / 2) + PRIOR_COEFFICIENTS.stepMs;
    expect(stepMs).toBeGreaterThan(45.6 * 0.93);
    expect(stepMs).toBeLessThan(45.6 * 1.07);
  });

  it("costs the reading of the weights however small the batch, and compute once that is more", () => {
    const bareMs = (sequences: number): number =>
      decodeStepMs(PRIOR_COEFFICIENTS, sequences, 0) - sequences * (0.0044 + 0.0033);
    expect(bareMs(1)).toBeCloseTo(1.5 + 5.7, 9);
    expect(bareMs(300)).toBeCloseTo(1.5 + 5.7, 9);
    expect(bareMs(1000)).toBeCloseTo(1.5 + 17.4, 9);
  });

  it("grows with every context token", () => {
    const grownMs = decodeStepMs(PRIOR_COEFFICIENTS, 8, 100_000) - decodeStepMs(PRIOR_COEFFICIENTS, 8, 0);
    expect(grownMs).toBeCloseTo(4.3, 9);
  });
});
