import { describe, expect, it } from "vitest";
import { times } from "../../../test/support/fleet.ts";
import { absorb, uniform } from "./uniform-hash.ts";

/** What keys and ids look like in practice: long common parts, few differing characters. */
const FAMILIES: readonly (readonly [string, (index: number) => string])[] = [
  ["counted sessions", (index) => `user-${index}`],
  ["zero-padded ids", (index) => index.toString().padStart(32, "0")],
  ["endpoint urls", (index) => `http://10.0.${index >> 8}.${index & 255}:8000`],
  ["one long prefix", (index) => `${"tenant/".repeat(20)}${index.toString(36)}`],
];

const SAMPLES = 20_000;
const BUCKETS = 100;

describe("uniform hash", () => {
  it.each(FAMILIES)("spreads %s evenly over buckets, at both ends of its bits", (_, name) => {
    const draws = times(SAMPLES, (index) => uniform(absorb("endpoint-1", absorb(name(index)))));
    // Chi-squared with 99 degrees of freedom: mean 99, standard deviation 14.1; five of them above.
    expect(chiSquared(draws.map((draw) => Math.floor(draw * BUCKETS)))).toBeLessThan(170);
    expect(chiSquared(draws.map((draw) => Math.floor(draw * 2 ** 40) % BUCKETS))).toBeLessThan(170);
  });

  it.each(FAMILIES)("draws independently for two endpoints under %s", (_, name) => {
    const cells = times(SAMPLES, (index) => {
      const session = absorb(name(index));
      const [one, other] = ["gpu-0", "gpu-1"].map((id) => Math.floor(uniform(absorb(id, session)) * 10));
      return (one as number) * 10 + (other as number);
    });
    expect(chiSquared(cells)).toBeLessThan(170);
  });

  it("tells apart where one name ends and the next begins", () => {
    expect(uniform(absorb("c", absorb("ab")))).not.toBe(uniform(absorb("bc", absorb("a"))));
    expect(uniform(absorb(""))).not.toBe(uniform(absorb("", absorb(""))));
  });

  it("stays strictly between 0 and 1 for every state of its lanes", () => {
    for (const low of [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)]) {
      for (const high of [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)]) {
        const draw = uniform({ low, high });
        expect(draw).toBeGreaterThan(0);
        expect(draw).toBeLessThan(1);
      }
    }
  });
});

function chiSquared(buckets: readonly number[]): number {
  const counts = new Array<number>(BUCKETS).fill(0);
  for (const bucket of buckets) counts[bucket] = (counts[bucket] ?? 0) + 1;
  const expected = buckets.length / BUCKETS;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}
