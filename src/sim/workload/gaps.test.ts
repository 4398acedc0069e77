import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/index.ts";
import { arrivalTimes, exponentialGaps, type Gaps, gammaGaps, weibullGaps } from "./gaps.ts";

const KINDS: readonly [name: string, gaps: Gaps, cv: number][] = [
  ["exponential", exponentialGaps, 1],
  ["even gamma", gammaGaps(4), 0.5],
  ["bursty gamma", gammaGaps(1 / 9), 3],
  ["Weibull of shape 0.6", weibullGaps(0.6), 1.758],
];

describe.each(KINDS)("%s gaps", (_, gaps, cv) => {
  it("have a mean of 1 and the coefficient of variation of their shape", () => {
    const random = seededRandom(5);
    const draws = Array.from({ length: 200_000 }, () => gaps.draw(random));
    const mean = draws.reduce((sum, x) => sum + x, 0) / draws.length;
    const deviation = Math.sqrt(draws.reduce((sum, x) => sum + (x - mean) ** 2, 0) / draws.length);
    // Five standard errors of the mean; the deviation of heavy tails scatters more, by about 1 % here.
    expect(Math.abs(mean - 1)).toBeLessThan((5 * cv) / Math.sqrt(draws.length));
    expect(Math.abs(deviation / cv - 1)).toBeLessThan(0.05);
  });

  it("bring rate times duration arrivals in short windows too", () => {
    const random = seededRandom(6);
    const windows = 20_000;
    const counts = Array.from({ length: windows }, () => [...arrivalTimes(gaps, 2, 100, 110, random)].length);
    const mean = counts.reduce((sum, count) => sum + count, 0) / windows;
    const deviation = Math.sqrt(counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / windows);
    // Five standard errors. Starting with a whole gap would miss by (cv² - 1) / 2, 4 for the bursty ones.
    expect(Math.abs(mean - 20)).toBeLessThan((5 * deviation) / Math.sqrt(windows));
  });
});

describe("arrivalTimes", () => {
  it("stay in the window and in order", () => {
    const times = [...arrivalTimes(gammaGaps(0.5), 3, 40, 90, seededRandom(1))];
    expect(times.length).toBeGreaterThan(50);
    expect(times.every((time) => time >= 40 && time < 90)).toBe(true);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });
});
