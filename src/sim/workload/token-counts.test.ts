import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/index.ts";
import { TokenCounts } from "./token-counts.ts";

const parse = (text: string) => TokenCounts.parse(text, (message) => new Error(message));

describe("TokenCounts", () => {
  it("draws counts by their weights, whatever those add up to", () => {
    const counts = parse("{5: 0.2, 80: 0.0, 90: 1e-1, 100: 0.5}");
    const random = seededRandom(3);
    const drawn = new Map<number, number>();
    for (let i = 0; i < 40_000; i++) {
      const count = counts.draw(random);
      drawn.set(count, (drawn.get(count) ?? 0) + 1);
    }
    expect([...drawn.keys()].sort((a, b) => a - b)).toEqual([5, 90, 100]);
    // Binomial: five standard deviations are below 500 of 40,000.
    for (const [count, share] of [
      [5, 0.25],
      [90, 0.125],
      [100, 0.625],
    ] as const) {
      expect(Math.abs((drawn.get(count) as number) - 40_000 * share)).toBeLessThan(500);
    }
  });

  it("counts 0 as 1", () => {
    expect(parse("{0: 1.0}").draw(seededRandom(1))).toBe(1);
  });

  it.each(["{}", "{5: 0}", "{5}", "{5: -1, 6: 2}", "{1.5: 1}", "{x: 1}"])("refuses %s", (text) => {
    expect(() => parse(text)).toThrow(`expected {TOKENS: PROBABILITY, ...}, got "${text}"`);
  });
});
