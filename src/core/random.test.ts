import { describe, expect, it } from "vitest";
import { PeekableRandom, seededRandom } from "./random.ts";

const draws = (random: { next(): number }, count: number): number[] =>
  Array.from({ length: count }, () => random.next());

describe("seededRandom", () => {
  it("repeats with the seed and differs without", () => {
    expect(draws(seededRandom(7), 100)).toEqual(draws(seededRandom(7), 100));
    expect(draws(seededRandom(7), 100)).not.toEqual(draws(seededRandom(8), 100));
  });

  it("is even over [0, 1)", () => {
    const counts = new Array<number>(10).fill(0);
    for (const draw of draws(seededRandom(1), 100_000)) {
      const bucket = Math.floor(draw * 10);
      counts[bucket] = (counts[bucket] as number) + 1;
    }
    // Binomial with mean 10,000 and standard deviation 95: five of them, the chance of a miss is below 1e-5.
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(475);
  });
});

describe("PeekableRandom", () => {
  it("shows the numbers to come and leaves them to be drawn", () => {
    const random = new PeekableRandom(seededRandom(3));
    const expected = draws(seededRandom(3), 6);
    expect(draws(random.peek(), 3)).toEqual(expected.slice(0, 3));
    expect(random.next()).toBe(expected[0]);
    expect(draws(random.peek(), 4)).toEqual(expected.slice(1, 5));
    expect(draws(random, 5)).toEqual(expected.slice(1));
  });
});
