import { describe, expect, it } from "vitest";
import { Fading } from "./fading.ts";

const T = 10_000;

describe("Fading", () => {
  it("leaves a part of 1 / e after each time constant", () => {
    const fading = new Fading(T);
    expect(fading.left(500, 500)).toBe(1);
    expect(fading.left(500, 500 + T)).toBeCloseTo(1 / Math.E, 12);
    expect(fading.left(500, 500 + 3 * T)).toBeCloseTo(Math.E ** -3, 12);
  });

  it.each([0, 1, 9_999.5, 10_000, 123_456.7, 1e9 + 0.25])(
    "is told through the last tick as it is at once: at %d ms",
    (nowMs) => {
      const fading = new Fading(T);
      const tickMs = fading.tickMs(nowMs);
      expect(tickMs).toBeLessThanOrEqual(nowMs);
      expect(nowMs - tickMs).toBeLessThan(T);
      for (const agoMs of [0, 10, 5_000, 25_000]) {
        const atMs = nowMs - agoMs;
        const left = fading.left(atMs, tickMs) * fading.leftSinceTick(nowMs);
        expect(left / fading.left(atMs, nowMs)).toBeCloseTo(1, 12);
      }
    },
  );

  it("follows the time wherever it is asked for", () => {
    const fading = new Fading(T);
    expect([5, 25_000, 5].map((nowMs) => fading.tickMs(nowMs))).toEqual([0, 20_000, 0]);
    expect(fading.leftSinceTick(5)).toBeCloseTo(Math.exp(-5 / T), 12);
    expect(fading.leftSinceTick(25_000)).toBeCloseTo(Math.exp(-0.5), 12);
  });
});
