import { describe, expect, it } from "vitest";
import { QuantileTracker } from "./quantile-tracker.ts";
import { seededRandom } from "./random.ts";

/** Log-normal samples around `median`, `spread` being the standard deviation of the logarithm. */
function samples(median: number, spread: number, count: number, seed = 1): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
    return median * Math.exp(spread * normal);
  });
}

function track(quantile: number, stream: readonly number[]): number {
  const tracker = new QuantileTracker(quantile);
  for (const sample of stream) tracker.observe(sample);
  return Math.exp(tracker.log);
}

describe("QuantileTracker", () => {
  it("has nothing to say before a sample and repeats the first", () => {
    const tracker = new QuantileTracker(0.5);
    expect([tracker.samples, tracker.log]).toEqual([0, 0]);
    tracker.observe(42);
    expect(tracker.samples).toBe(1);
    expect(Math.exp(tracker.log)).toBeCloseTo(42, 9);
  });

  it.each([
    [0.5, 1],
    // The 35th percentile of a log-normal with spread 0.5 lies at exp(-0.385 x 0.5).
    [0.35, 0.825],
    [0.9, 1.898],
  ])("finds the quantile %d of a noisy stream", (quantile, expected) => {
    // The standing noise of a step of 0.02 is sqrt(0.02 q (1 - q) / 2 f) with the density f: 0.056 here. Four of them.
    for (const seed of [1, 2, 3, 4, 5]) {
      const found = track(quantile, samples(10, 0.5, 3000, seed)) / 10;
      expect(Math.abs(Math.log(found / expected))).toBeLessThan(0.225);
    }
  });

  it("is near after five samples", () => {
    // The median of five has 0.54 of the spread of one: three standard deviations.
    for (const seed of [1, 2, 3, 4, 5]) {
      expect(Math.abs(Math.log(track(0.5, samples(10, 0.3, 5, seed)) / 10))).toBeLessThan(3 * 0.54 * 0.3);
    }
  });

  it("is rid of a wild first sample after two more", () => {
    expect(track(0.5, [1e6, 10, 10])).toBeCloseTo(10, 9);
  });

  it("follows a doubling within some 70 samples", () => {
    const stream = [...samples(10, 0.05, 500), ...samples(20, 0.05, 75)];
    expect(track(0.5, stream)).toBeGreaterThan(18);
  });

  it("is moved by a stall in a hundred samples by one step, however long it is", () => {
    const steady = new Array<number>(100).fill(10);
    expect(track(0.5, [...steady, 1e9])).toBeLessThan(10.2);
  });

  it("stands still on a stream without noise", () => {
    expect(track(0.35, new Array<number>(1000).fill(10))).toBeCloseTo(10, 9);
  });

  it("moves with what it is shifted by, and its first samples with it", () => {
    const tracker = new QuantileTracker(0.5);
    tracker.shift(1);
    expect(tracker.log).toBe(0);
    for (const sample of [1, 1, 1]) tracker.observe(sample);
    tracker.shift(Math.log(2));
    expect(Math.exp(tracker.log)).toBeCloseTo(2, 9);
    for (const sample of [2, 9, 9]) tracker.observe(sample);
    expect(Math.exp(tracker.log)).toBeCloseTo(2, 9);
  });

  it("is pulled by a sample as far as that weighs", () => {
    const [light, heavy] = [new QuantileTracker(0.5), new QuantileTracker(0.5)];
    for (let i = 0; i < 15; i++) for (const tracker of [light, heavy]) tracker.observe(1);
    expect(light.isWarm).toBe(true);
    light.observe(5, 0.5);
    heavy.observe(5, 2);
    expect(heavy.log / light.log).toBeCloseTo(4, 9);
  });
});
