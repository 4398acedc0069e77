import { describe, expect, it } from "vitest";
import { KalmanFit } from "./kalman-fit.ts";
import { seededRandom } from "./random.ts";

const TRUTH = [0.4, -0.9];

/** Tells `fit` of `count` values that the truth gives, spread about by `noise`, with one in ten wild. */
function teach(fit: KalmanFit, count: number, noise: number, wild = 0): void {
  const random = seededRandom(1);
  for (let i = 0; i < count; i++) {
    const slopes = [1, random.next()];
    const wildness = random.next() < 0.1 ? wild : 0;
    const value = dot(slopes, TRUTH) + noise * (2 * random.next() - 1) + wildness;
    fit.observe(slopes, value - dot(slopes, [fit.value(0), fit.value(1)]), 0.1, [0, 0]);
  }
}

function dot([a = 0, b = 0]: readonly number[], [c = 0, d = 0]: readonly number[]): number {
  return a * c + b * d;
}

const fresh = (): KalmanFit => new KalmanFit([1, 1].map((spread) => ({ spread, bound: 3 })));

describe("KalmanFit", () => {
  it("expects 0 and knows nothing before anything was seen", () => {
    const fit = fresh();
    expect([fit.value(0), fit.value(1), fit.known(0), fit.known(1)]).toEqual([0, 0, 0, 0]);
    expect(fit.valueFrom(1, [0.3, 0.7])).toBe(0.7);
  });

  it.each([
    ["exact", 0, 0],
    ["noisy", 0.2, 0],
    ["some of them wild", 0.05, 5],
  ])("finds the unknowns from values that are %s", (_, noise, wild) => {
    const fit = fresh();
    teach(fit, 300, noise, wild);
    for (const [i, value] of TRUTH.entries()) expect(Math.abs(fit.value(i) - value)).toBeLessThan(0.12);
    expect(Math.min(fit.known(0), fit.known(1))).toBeGreaterThan(0.9);
  });

  it("leaves what no value tells where it was expected", () => {
    const fit = fresh();
    for (let i = 0; i < 100; i++) fit.observe([1, 0], 0.5 - fit.value(0), 0.1, [0, 0]);
    expect(fit.value(0)).toBeCloseTo(0.5, 2);
    expect([fit.value(1), fit.known(1)]).toEqual([0, 0]);
    expect(fit.valueFrom(1, [0, -0.6])).toBe(-0.6);
  });

  it("takes over from the expected what its own values confirm", () => {
    const fit = fresh();
    for (let i = 0; i < 300; i++) {
      const slopes = [1, (i % 5) / 5];
      fit.observe(slopes, 0, 0.1, [0, -0.9]);
    }
    expect(fit.value(1)).toBeCloseTo(-0.9, 1);
    expect(fit.valueFrom(1, [0, -0.9])).toBeCloseTo(-0.9, 6);
  });

  it("follows unknowns that drift", () => {
    const fit = fresh();
    const random = seededRandom(4);
    for (let i = 0; i < 2000; i++) {
      fit.observe([1, 0], 0.5 - i / 2000 + 0.1 * (random.next() - 0.5) - fit.value(0), 0.1, [0, 0]);
    }
    expect(Math.abs(fit.value(0) + 0.5)).toBeLessThan(0.06);
  });

  it("never believes more than the bound", () => {
    const fit = fresh();
    for (let i = 0; i < 1000; i++) fit.observe([1, 0], 10, 0.1, [0, 0]);
    expect(fit.value(0)).toBe(3);
  });

  it("can be told an unknown, and goes on from there", () => {
    const fit = fresh();
    teach(fit, 50, 0);
    fit.set(0, 2, 0.01);
    expect(fit.value(0)).toBe(2);
    expect(fit.known(0)).toBeCloseTo(1, 3);
    fit.observe([1, 0], 0, 0.1, [0, 0]);
    expect(fit.value(0)).toBe(2);
  });
});
