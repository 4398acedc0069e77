import { describe, expect, it } from "vitest";
import { BLOCK_UNITS, PrefixHasher, type TextRoom } from "./prefix-hash.ts";
import { seededRandom } from "./random.ts";

function hashes(parts: readonly string[], scope: readonly (string | undefined)[] = ["m"]): readonly number[] {
  const hasher = new PrefixHasher(scope);
  for (const part of parts) hasher.update(part);
  return hasher.finish(1)?.hashes ?? [];
}

/** Text without a pattern, of printable characters. */
function text(units: number, seed = 1): string {
  const random = seededRandom(seed);
  return Array.from({ length: units }, () => String.fromCharCode(32 + Math.floor(random.next() * 95))).join("");
}

/** A room that is written over and over. */
function roomOf(blocks: number): TextRoom {
  const units = new Uint16Array(blocks * BLOCK_UNITS);
  return {
    words: new Int32Array(units.buffer),
    put: (text, at) =>
      units.set(
        Uint16Array.from(text.split(""), (unit) => unit.charCodeAt(0)),
        at,
      ),
  };
}

describe("the chain of hashes", () => {
  it("has one hash for each full block and none for less", () => {
    expect(hashes([text(BLOCK_UNITS - 1)])).toHaveLength(0);
    expect(hashes([text(BLOCK_UNITS)])).toHaveLength(1);
    expect(hashes([text(3 * BLOCK_UNITS + 17)])).toHaveLength(3);
    expect(new PrefixHasher(["m"]).finish(10)).toBeUndefined();
  });

  it("starts with the chain of every text it begins with", () => {
    const long = text(5000);
    for (const units of [256, 300, 1000, 4999]) {
      const short = hashes([long.slice(0, units)]);
      expect(hashes([long]).slice(0, short.length)).toEqual(short);
    }
  });

  it("starts with the chain of the conversation so far, parts of odd length included", () => {
    const turns = [text(301, 1), text(77, 2), text(1024, 3)];
    const earlier = hashes(turns);
    const later = hashes([...turns, text(600, 4)]);
    expect(later.length).toBeGreaterThan(earlier.length);
    expect(later.slice(0, earlier.length)).toEqual(earlier);
  });

  it("differs from the first changed block on, to the end", () => {
    const one = text(2000);
    const other = `${one.slice(0, 600)}#${one.slice(601)}`;
    const [a, b] = [hashes([one]), hashes([other])];
    expect(b.slice(0, 2)).toEqual(a.slice(0, 2));
    for (let block = 2; block < a.length; block++) expect(b[block]).not.toBe(a[block]);
  });

  it("differs between equal blocks at different depths", () => {
    expect(new Set(hashes(["x".repeat(20 * BLOCK_UNITS)])).size).toBe(20);
  });

  it.each([1, 2, 5])("is the same in a room of %d blocks", (blocks) => {
    const parts = [text(301, 1), "", text(BLOCK_UNITS, 2), "\ud83d", text(2000, 3), text(19, 4)];
    const hasher = new PrefixHasher(["m"], roomOf(blocks));
    for (const part of parts) hasher.update(part);
    expect(hasher.finish(1)?.hashes).toEqual(hashes(parts));
  });

  const filler = "z".repeat(BLOCK_UNITS);
  it.each([
    [
      ["ab", filler],
      ["a", "b", filler],
    ],
    [
      ["a", filler],
      ["a\0", filler],
    ],
    [["", filler], [filler]],
    [
      ["a", "", filler],
      ["a", filler],
    ],
    [
      ["abc", "d", filler],
      ["ab", "cd", filler],
    ],
  ])("tells the parts %j and %j apart", (one, other) => {
    expect(hashes(one)[0]).not.toBe(hashes(other)[0]);
  });

  it("gives whole numbers that a double holds exactly", () => {
    for (const hash of hashes([text(100_000)])) {
      expect(Number.isSafeInteger(hash)).toBe(true);
      expect(hash).toBeLessThan(2 ** 52);
      expect(hash).toBeGreaterThanOrEqual(0);
    }
  });

  it("spreads the prompt's tokens evenly over its text", () => {
    const hasher = new PrefixHasher(["m"]);
    hasher.update(text(512));
    hasher.update(text(512));
    expect(hasher.finish(300)?.tokensPerBlock).toBe(75);
  });
});

describe("the scope", () => {
  it("keeps model, adapter and salt apart, whatever they are called", () => {
    const prompt = [text(BLOCK_UNITS)];
    const scopes: (string | undefined)[][] = [
      ["A", undefined, undefined],
      ["A", "x", undefined],
      ["A", undefined, "s"],
      ["A", "s", undefined],
      ["A", "", undefined],
      ["B", undefined, undefined],
      ["As", undefined, undefined],
      ["A", "s", "s"],
    ];
    expect(new Set(scopes.map((scope) => hashes(prompt, scope)[0])).size).toBe(scopes.length);
  });
});

describe("the quality of the hash", () => {
  it.each([0, 1, 128, 254, 255])("changes each bit in half the cases when a bit of unit %d flips", (position) => {
    const trials = 1500;
    const flips = new Array<number>(52).fill(0);
    const random = seededRandom(position);
    for (let trial = 0; trial < trials; trial++) {
      const units = Array.from(text(BLOCK_UNITS, trial), (unit) => unit.charCodeAt(0));
      const before = hashes([String.fromCharCode(...units)])[0] as number;
      units[position] = (units[position] as number) ^ (1 << Math.floor(random.next() * 7));
      const after = hashes([String.fromCharCode(...units)])[0] as number;
      const changed = BigInt(before) ^ BigInt(after);
      for (let bit = 0; bit < 52; bit++) flips[bit] = (flips[bit] as number) + Number((changed >> BigInt(bit)) & 1n);
    }
    // Binomial: a standard deviation is sqrt(0.25 / 1,500) = 0.013; five of them.
    for (const count of flips) expect(Math.abs(count / trials - 0.5)).toBeLessThan(0.065);
  });

  it.each<[string, (digits: string) => string]>([
    ["at the end", (digits) => `${"x".repeat(BLOCK_UNITS - 6)}${digits}`],
    ["at the start", (digits) => `${digits}${"x".repeat(BLOCK_UNITS - 6)}`],
    ["at both ends", (digits) => `${digits.slice(0, 3)}${"x".repeat(BLOCK_UNITS - 6)}${digits.slice(3)}`],
  ])("collides no more often than chance for texts that count %s", (_, textOf) => {
    const count = 200_000;
    const whole = new Set<number>();
    const low = new Set<number>();
    for (let i = 0; i < count; i++) {
      const [hash] = hashes([textOf(String(i).padStart(6, "0"))]) as [number];
      whole.add(hash);
      low.add(hash % 2 ** 32);
    }
    // 200,000 draws of 52 bits collide once in 200,000 runs; of 32 bits 4.7 times, Poisson: five deviations more.
    expect(count - whole.size).toBe(0);
    expect(count - low.size).toBeLessThan(16);
  });
});
