import { describe, expect, it } from "vitest";
import { DrainMeter } from "./drain-meter.ts";

/** Requests that end one after the other, `everyMs` apart, one in flight at any time. */
function drained(meter: DrainMeter, fromMs: number, everyMs: number, count: number): number {
  let nowMs = fromMs;
  meter.began(nowMs);
  for (let i = 0; i < count; i++) {
    nowMs += everyMs;
    meter.began(nowMs);
    meter.ended(true, nowMs);
  }
  meter.ended(false, nowMs);
  return nowMs;
}

describe("the drain meter", () => {
  it("knows no rate before a request has ended", () => {
    const meter = new DrainMeter();
    expect(meter.perSecond(0)).toBeUndefined();
    meter.began(0);
    expect(meter.perSecond(100)).toBeUndefined();
    meter.ended(true, 200);
    expect(meter.perSecond(200)).toBeCloseTo(5, 1);
  });

  it("says how many end a second, from the first on", () => {
    const meter = new DrainMeter();
    const nowMs = drained(meter, 5000, 250, 10);
    expect(meter.perSecond(nowMs)).toBeCloseTo(4, 1);
  });

  it("follows a change within its window", () => {
    const meter = new DrainMeter();
    const changedAtMs = drained(meter, 0, 100, 1000);
    const nowMs = drained(meter, changedAtMs, 1000, 90);
    // Three windows later a twentieth of what was is left.
    expect(meter.perSecond(nowMs)).toBeCloseTo(1 + 9 * Math.exp(-3), 1);
  });

  it("does not count requests that their endpoint failed", () => {
    const meter = new DrainMeter();
    drained(meter, 0, 1000, 20);
    const before = meter.perSecond(20_000);
    for (let i = 0; i < 100; i++) {
      meter.began(20_000);
      meter.ended(false, 20_000);
    }
    expect(meter.perSecond(20_000)).toBe(before);
  });

  it("takes no notice of time in which nothing is in flight, and is asked without being changed", () => {
    const meter = new DrainMeter();
    const nowMs = drained(meter, 0, 500, 40);
    const rate = meter.perSecond(nowMs);
    expect([meter.perSecond(nowMs + 1e7), meter.perSecond(nowMs)]).toEqual([rate, rate]);
    const laterMs = drained(meter, nowMs + 1e7, 500, 2);
    expect(meter.perSecond(laterMs)).toBeCloseTo(2, 1);
  });

  it("slows down while what is in flight does not end, until it knows nothing any more", () => {
    const meter = new DrainMeter();
    const nowMs = drained(meter, 0, 500, 60);
    meter.began(nowMs);
    const rates = [1, 20, 40].map((seconds) => meter.perSecond(nowMs + 1000 * seconds) ?? 0);
    expect(rates.toSorted((one, other) => other - one)).toEqual(rates);
    expect(meter.perSecond(nowMs + 300_000)).toBeUndefined();
  });
});
