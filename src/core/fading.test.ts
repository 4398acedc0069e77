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
      fading.moveTo(nowMs);
      const { tickMs, leftSinceTick } = fading;
      expect(tickMs).toBeLessThanOrEqual(nowMs);
      expect(nowMs - tickMs).toBeLessThan(T);
      for (const agoMs of [0, 10, 5_000, 25_000]) {
        const atMs = nowMs - agoMs;
        const left = fading.left(atMs, tickMs) * leftSinceTick;
        expect(left / fading.left(atMs, nowMs)).toBeCloseTo(1, 12);
      }
    },
  );

  it("follows the time wherever it is moved to", () => {
    const fading = new Fading(T);
    const at = (nowMs: number) => {
      fading.moveTo(nowMs);
      return [fading.tickMs, Math.log(fading.leftSinceTick) * T];
    };
    for (const [nowMs, tickMs, agoMs] of [
      [5, 0, 5],
      [25_000, 20_000, 5000],
      [5, 0, 5],
    ] as const) {
      expect(at(nowMs)[0]).toBe(tickMs);
      expect(at(nowMs)[1]).toBeCloseTo(-agoMs, 6);
    }
  });
});
