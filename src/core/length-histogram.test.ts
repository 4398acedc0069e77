import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LengthHistogram } from "./length-histogram.ts";
import { seededRandom } from "./random.ts";

function histogramOf(lengths: readonly number[]): LengthHistogram {
  const histogram = new LengthHistogram();
  for (const length of lengths) histogram.observe(length);
  return histogram;
}

function residual(histogram: LengthHistogram, tokens: number): number {
  const { weight, excess } = histogram.beyond(tokens);
  return excess / weight;
}

const repeat = (length: number, times: number): number[] => new Array<number>(times).fill(length);

describe("LengthHistogram", () => {
  it("is empty at first", () => {
    const histogram = new LengthHistogram();
    expect(histogram.weight).toBe(0);
    expect(histogram.beyond(10)).toEqual({ weight: 0, excess: 0 });
  });

  it.each([1, 2, 3, 7, 20, 255, 256, 300, 303, 5000])("knows how far a fixed length of %d still is", (length) => {
    const histogram = histogramOf(repeat(length, 50));
    for (const tokens of [0, 1, Math.floor(length / 2), Math.floor(0.8 * length)].filter((at) => at < length)) {
      expect(residual(histogram, tokens)).toBeCloseTo(length - tokens, 6);
    }
    // In its own bin it is blurred by half of that at most: a bin is 19 % wide.
    if (length > 1) expect(residual(histogram, length - 1)).toBeLessThanOrEqual(1 + 0.1 * length);
    expect(histogram.beyond(Math.ceil(1.2 * length)).weight).toBeCloseTo(0, 9);
  });

  it("splits a bin that the tokens stand in: what lies behind no longer counts", () => {
    // 255 to 303 is one bin.
    const even = Array.from({ length: 49 }, (_, i) => 255 + i);
    const histogram = histogramOf(even);
    for (const tokens of [255, 270, 290, 302]) {
      const ahead = even.filter((length) => length > tokens);
      expect(histogram.beyond(tokens).weight).toBeCloseTo(ahead.length, -0.5);
      expect(residual(histogram, tokens)).toBeCloseTo((303 - tokens + 1) / 2, 1);
    }
  });

  it("is near the mean residual life of the lengths themselves, for any mix of them", () => {
    const length = fc.integer({ min: 1, max: 20_000 });
    fc.assert(
      fc.property(fc.array(length, { minLength: 1, maxLength: 40 }), fc.nat(20_000), (lengths, tokens) => {
        const histogram = histogramOf(lengths);
        const { weight, excess } = histogram.beyond(tokens);
        const ahead = lengths.filter((candidate) => candidate > tokens);
        const trueExcess = ahead.reduce((sum, candidate) => sum + candidate - tokens, 0);
        // Only the bin of `tokens` is a guess: its lengths are within 19 % of it, or of one token.
        const inBin = lengths.filter((candidate) => Math.abs(Math.log2((candidate + 1) / (tokens + 1))) <= 0.25).length;
        const faded = 1 - 2 ** (-lengths.length / 1000) + 1e-9;
        expect(Math.abs(weight - ahead.length)).toBeLessThanOrEqual(inBin + faded * lengths.length);
        expect(Math.abs(excess - trueExcess)).toBeLessThanOrEqual(
          inBin * (0.19 * (tokens + 1) + 1) + faded * trueExcess,
        );
      }),
      { numRuns: 500 },
    );
  });

  it("expects a longer whole the further an output has come", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5000), { minLength: 1, maxLength: 40 }), (lengths) => {
        const histogram = histogramOf(lengths);
        let least = 0;
        for (let tokens = 0; histogram.beyond(tokens).weight > 1e-9; tokens += 1 + Math.floor(tokens / 20)) {
          const whole = tokens + residual(histogram, tokens);
          expect(whole).toBeGreaterThan(least - 1e-6);
          least = whole;
        }
      }),
    );
  });

  it("forgets half of what it saw in a thousand completions", () => {
    const histogram = histogramOf(repeat(100, 500));
    const before = histogram.beyond(50).weight;
    for (let i = 0; i < 1000; i++) histogram.observe(10);
    expect(histogram.beyond(50).weight / before).toBeCloseTo(0.5, 6);
  });

  it("never weighs more than some 1,443 completions, and goes on without end", () => {
    const histogram = histogramOf(repeat(100, 90_000));
    // The limit of a halving every 1,000: 1 / (2^(1/1000) - 1).
    expect(histogram.weight).toBeCloseTo(1442.2, 0);
    expect(residual(histogram, 0)).toBeCloseTo(100, 6);
  });

  it("gives the mean of an exponential at every point of it", () => {
    const random = seededRandom(5);
    const lengths = Array.from({ length: 20_000 }, () => Math.ceil(-300 * Math.log(1 - random.next())));
    const histogram = histogramOf(lengths);
    // 1,443 effective completions; beyond two means 195 are left: standard deviation 7 %, four of them.
    for (const tokens of [0, 100, 300, 600]) {
      expect(Math.abs(Math.log(residual(histogram, tokens) / 300))).toBeLessThan(0.28);
    }
  });

  it("counts lengths beyond a million like a million", () => {
    const histogram = histogramOf([5_000_000, Number.POSITIVE_INFINITY]);
    expect(residual(histogram, 0)).toBeLessThan(2 ** 20);
    expect(histogram.beyond(2 ** 21).weight).toBe(0);
  });
});
