import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/index.ts";
import { readDistribution, readNumber } from "./distribution.ts";

const SAMPLE = 100_000;

function sample(text: string): number[] {
  const random = seededRandom(9);
  const distribution = readDistribution(text, readNumber);
  return Array.from({ length: SAMPLE }, () => distribution?.draw(random) ?? Number.NaN).sort((a, b) => a - b);
}
const mean = (draws: readonly number[]) => draws.reduce((sum, x) => sum + x, 0) / draws.length;

describe("readDistribution", () => {
  it.each([
    // Bounds: five standard errors, deviation / sqrt(100,000) times five, relative to the mean.
    ["250", 250, 1e-12],
    ["uniform(100, 300)", 200, 0.0046],
    ["exp(200)", 200, 0.016],
    ["lognormal(800,1.2)", 800, 0.029],
    ["lognormal(800,p99=4000)", 800, 0.019],
  ])("reads %s, whose mean is %d", (text, expected, bound) => {
    expect(Math.abs(mean(sample(text)) / expected - 1)).toBeLessThan(bound);
  });

  it("keeps a uniform distribution between its ends", () => {
    const draws = sample("uniform(100,300)");
    expect(draws[0]).toBeGreaterThanOrEqual(100);
    expect(draws.at(-1)).toBeLessThan(300);
  });

  it.each([1000, 4000, 11_000])("gives a log-normal of mean 800 the 99th percentile %d", (p99) => {
    const draws = sample(`lognormal(800,p99=${p99})`);
    // The share of 100,000 below the true percentile is 0.99 with a deviation of 0.0003.
    expect(Math.abs(draws.filter((x) => x < p99).length / SAMPLE - 0.99)).toBeLessThan(0.0016);
  });

  it.each([
    "",
    "-5",
    "exp",
    "exp()",
    "exp(1,2)",
    "normal(5,1)",
    "uniform(5)",
    "uniform(9,5)",
    "uniform(1,2,3)",
    "lognormal(800)",
    "lognormal(0,1)",
    "lognormal(800,x)",
    "lognormal(800,p99=700)",
    "lognormal(800,p99=12000)",
    "lognormal(800,p99=x)",
  ])("refuses %j", (text) => {
    expect(readDistribution(text, readNumber)).toBeUndefined();
  });
});
