import { describe, expect, it } from "vitest";
import { type Random, seededRandom } from "../../core/index.ts";
import { drawExponential, drawGamma, drawNormal, drawWeibull, gammaFunction } from "./draws.ts";

const SAMPLE = 100_000;

/**
 * Largest distance of two distribution functions that chance explains: beyond it lies one sample in 500,000
 * (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant: 2 exp(-2 n d²) = 2e-6).
 */
const KS_BOUND = Math.sqrt(Math.log(1e6) / (2 * SAMPLE));

function sample(draw: (random: Random) => number): number[] {
  const random = seededRandom(11);
  return Array.from({ length: SAMPLE }, () => draw(random)).sort((a, b) => a - b);
}

function distance(sorted: readonly number[], distribution: (x: number) => number): number {
  return sorted.reduce((largest, x, index) => {
    const expected = distribution(x);
    return Math.max(largest, Math.abs(expected - index / SAMPLE), Math.abs(expected - (index + 1) / SAMPLE));
  }, 0);
}

/** Simpson's rule over the density, for distributions without a closed form. */
function normalDistribution(x: number): number {
  const steps = 60;
  const density = (z: number) => Math.exp(-(z ** 2) / 2) / Math.sqrt(2 * Math.PI);
  const width = x / steps;
  let sum = density(0) + density(x);
  for (let step = 1; step < steps; step++) sum += density(step * width) * (step % 2 === 1 ? 4 : 2);
  return 0.5 + (sum * width) / 3;
}

describe("draws", () => {
  it.each<[string, (random: Random) => number, (x: number) => number]>([
    ["exponential", drawExponential, (x) => 1 - Math.exp(-x)],
    ["normal", drawNormal, normalDistribution],
    ["gamma of shape 1, the exponential", (random) => drawGamma(random, 1), (x) => 1 - Math.exp(-x)],
    ["gamma of shape 3, the sum of three exponentials", (random) => drawGamma(random, 3), erlang3],
    [
      "gamma of shape 1/2, half a squared normal",
      (random) => drawGamma(random, 0.5),
      (x) => 2 * normalDistribution(Math.sqrt(2 * x)) - 1,
    ],
    ["Weibull of shape 0.5", (random) => drawWeibull(random, 0.5), (x) => 1 - Math.exp(-Math.sqrt(x))],
    ["Weibull of shape 2", (random) => drawWeibull(random, 2), (x) => 1 - Math.exp(-(x ** 2))],
  ])("follow the %s distribution", (_, draw, distribution) => {
    expect(distance(sample(draw), distribution)).toBeLessThan(KS_BOUND);
  });

  it.each([0.02, 0.3, 7.5, 40])("have the mean and the variance of gamma of shape %d", (shape) => {
    const draws = sample((random) => drawGamma(random, shape));
    const mean = draws.reduce((sum, x) => sum + x, 0) / SAMPLE;
    const variance = draws.reduce((sum, x) => sum + (x - mean) ** 2, 0) / SAMPLE;
    // Five standard errors; that of the variance is sqrt((mu4 - variance²) / n) with mu4 = 3 k² + 6 k.
    expect(Math.abs(mean - shape)).toBeLessThan(5 * Math.sqrt(shape / SAMPLE));
    expect(Math.abs(variance - shape)).toBeLessThan(5 * Math.sqrt((2 * shape ** 2 + 6 * shape) / SAMPLE));
  });
});

function erlang3(x: number): number {
  return 1 - Math.exp(-x) * (1 + x + x ** 2 / 2);
}

describe("gammaFunction", () => {
  it.each([
    [0.5, Math.sqrt(Math.PI)],
    [1, 1],
    [1.5, Math.sqrt(Math.PI) / 2],
    [5, 24],
    [21, 2_432_902_008_176_640_000],
  ])("of %d is %d", (x, expected) => {
    expect(Math.abs(gammaFunction(x) / expected - 1)).toBeLessThan(1e-12);
  });

  it("does not overflow before its value does", () => {
    // 170!, the last that a double holds.
    expect(gammaFunction(171) / 7.257_415_615_307_999e306).toBeCloseTo(1, 10);
  });
});
