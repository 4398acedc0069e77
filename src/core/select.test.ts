import { describe, expect, it } from "vitest";
import { type Random, seededRandom } from "./random.ts";
import { leastBy, sample } from "./select.ts";

/** Gives the listed numbers and fails when asked for more. */
function scripted(...numbers: number[]): Random {
  return {
    next() {
      const number = numbers.shift();
      if (number === undefined) throw new Error("no draw was expected");
      return number;
    },
  };
}

/** How often each of `items` comes out of `draws` draws. */
function shares(items: readonly string[], draws: number, draw: (random: Random) => string): number[] {
  const random = seededRandom(11);
  const counts = new Map(items.map((item) => [item, 0]));
  for (let i = 0; i < draws; i++) {
    const drawn = draw(random);
    counts.set(drawn, (counts.get(drawn) ?? 0) + 1);
  }
  return items.map((item) => (counts.get(item) ?? 0) / draws);
}

const DRAWS = 60_000;
/** Five standard deviations of the least certain share: sqrt(0.25 / 60,000) = 0.002. */
const BOUND = 0.0105;

describe("leastBy", () => {
  it("takes the smallest score without a draw", () => {
    expect(leastBy([3, 1, 2], (score) => score, scripted())).toBe(1);
    expect(leastBy([5], (score) => score, scripted(0))).toBe(5);
  });

  it("draws evenly among equals, wherever they stand", () => {
    const items = ["a", "x", "b", "c", "y", "d"] as const;
    const score = (item: string): number => (item === "x" || item === "y" ? 2 : 1);
    const [a, x, b, c, y, d] = shares(items, DRAWS, (random) => leastBy(items, score, random));
    for (const share of [a, b, c, d]) expect(Math.abs((share as number) - 0.25)).toBeLessThan(BOUND);
    expect([x, y]).toEqual([0, 0]);
  });

  it("draws evenly when every score is infinite", () => {
    const [a, b] = shares(["a", "b"], DRAWS, (random) => leastBy(["a", "b"], () => Number.POSITIVE_INFINITY, random));
    expect(Math.abs((a as number) - 0.5)).toBeLessThan(BOUND);
    expect((a as number) + (b as number)).toBe(1);
  });

  it("takes a score that is not a number only where there is no other", () => {
    const score = (item: number): number => item;
    expect(leastBy([Number.NaN, 7], score, seededRandom(1))).toBe(7);
    expect(leastBy([7, Number.NaN], score, seededRandom(1))).toBe(7);
    expect(leastBy([Number.NaN, Number.NaN], score, seededRandom(1))).toBeNaN();
  });

  it("asks for each score once", () => {
    const asked: string[] = [];
    leastBy(["a", "b", "c"], (item) => asked.push(item), seededRandom(1));
    expect(asked).toEqual(["a", "b", "c"]);
  });
});

describe("sample", () => {
  it("draws in proportion to the weights", () => {
    const weights: Record<string, number> = { a: 35, b: 15, c: 50 };
    const drawn = shares(["a", "b", "c"], DRAWS, (random) =>
      sample(["a", "b", "c"], (item) => weights[item] as number, random),
    );
    for (const [i, expected] of [0.35, 0.15, 0.5].entries()) {
      expect(Math.abs((drawn[i] as number) - expected)).toBeLessThan(BOUND);
    }
  });

  it.each([
    // draw in [0, 1) of weights a 1, b 0, c 3
    [0, "a"],
    [0.2499, "a"],
    [0.25, "c"],
    [0.9999999, "c"],
  ])("at a draw of %d it takes %s", (draw, expected) => {
    const weights: Record<string, number> = { a: 1, b: 0, c: 3 };
    expect(sample(["a", "b", "c"], (item) => weights[item] as number, scripted(draw))).toBe(expected);
  });

  it("never takes a weight of 0 or below while another is above", () => {
    const weights: Record<string, number> = { a: 0, b: 2, c: -5 };
    for (const draw of [0, 0.5, 0.999]) {
      expect(sample(["a", "b", "c"], (item) => weights[item] as number, scripted(draw))).toBe("b");
    }
  });

  it("draws evenly when no weight is above 0", () => {
    const drawn = shares(["a", "b", "c"], DRAWS, (random) => sample(["a", "b", "c"], () => 0, random));
    for (const share of drawn) expect(Math.abs(share - 1 / 3)).toBeLessThan(BOUND);
  });

  it("gives what rounding leaves over to the last item with a weight", () => {
    // A source that breaks its promise of staying below 1 is the surest way into the gap.
    expect(sample(["a", "b"], (item) => (item === "a" ? 1 : 0), scripted(1))).toBe("a");
    expect(sample(["a", "b"], () => 0, scripted(1))).toBe("a");
  });
});
