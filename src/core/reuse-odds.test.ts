import { describe, expect, it } from "vitest";
import { ReuseOdds } from "./reuse-odds.ts";

/** Chance of another use that `usesToCome` stands for, below the bound: uses = q / (1 - q). */
function chance(odds: ReuseOdds, idleMs: number): number {
  const uses = odds.usesToCome(idleMs);
  return uses / (1 + uses);
}

/** `requests` requests, each of which finds what the one before it left `idleMs` ago. */
function again(odds: ReuseOdds, idleMs: number, requests: number): void {
  for (let i = 0; i < requests; i++) {
    odds.released(1);
    odds.returned(idleMs, 1);
  }
}

function once(odds: ReuseOdds, requests: number): void {
  for (let i = 0; i < requests; i++) odds.released(1);
}

describe("the odds of another use", () => {
  it("are 0.4 for what was just used, before anything was seen, and fall with the time it has been idle", () => {
    const odds = new ReuseOdds();
    // The first of 24 equal buckets is behind it: (16 - 16/24) / (40 - 16/24).
    expect(chance(odds, 0)).toBeCloseTo(15.333 / 39.333, 3);
    expect(chance(odds, 60_000)).toBeLessThan(chance(odds, 0));
    expect(odds.usesToCome(7_200_000)).toBe(0);
  });

  it("count those used again later, of those that are idle still", () => {
    const odds = new ReuseOdds();
    again(odds, 10_000, 300);
    once(odds, 100);
    // Half octaves: 10 s lies between 8 and 11.3 s, the prior's share of returns adds up to (bucket + 1) / 24 of 16.
    const prior = (buckets: number) => (16 * buckets) / 24;
    expect(chance(odds, 5000)).toBeCloseTo((16 - prior(6) + 300) / (440 - prior(6)), 6);
    expect(chance(odds, 10_000)).toBeCloseTo((16 - prior(8)) / (440 - prior(8) - 300), 6);
  });

  it("are bounded where what was used is always used again", () => {
    const odds = new ReuseOdds();
    again(odds, 20_000, 3900);
    expect(odds.usesToCome(1000)).toBeGreaterThan(7.9);
    expect(odds.usesToCome(1000)).toBeLessThanOrEqual(8);
  });

  it("are the bound where more was used again than was let go, as far as is remembered", () => {
    const odds = new ReuseOdds();
    for (let i = 0; i < 500; i++) odds.returned(2000, 1);
    expect(odds.usesToCome(60_000)).toBe(8);
  });

  it.each([-5, 0, Number.NaN, 999])("take an idle time of %d ms for a short one", (idleMs) => {
    const odds = new ReuseOdds();
    odds.returned(idleMs, 5);
    expect(odds.usesToCome(idleMs)).toBe(odds.usesToCome(1000));
  });

  it("take an hour or more for the longest", () => {
    const odds = new ReuseOdds();
    odds.returned(1e12, 20);
    expect(chance(odds, 1_000_000)).toBeGreaterThan(0.4);
    expect(odds.usesToCome(1e12)).toBe(0);
  });

  it("weigh the blocks of one prompt as one request", () => {
    const [whole, parts] = [new ReuseOdds(), new ReuseOdds()];
    again(whole, 3000, 50);
    for (let i = 0; i < 50 * 4; i++) {
      parts.released(1 / 4);
      parts.returned(3000, 1 / 4);
    }
    for (const idleMs of [0, 2000, 10_000]) expect(parts.usesToCome(idleMs)).toBeCloseTo(whole.usesToCome(idleMs), 9);
  });

  it("follow traffic that changes within some thousand requests", () => {
    const odds = new ReuseOdds();
    again(odds, 5000, 20_000);
    expect(chance(odds, 0)).toBeGreaterThan(0.85);
    once(odds, 8000);
    expect(chance(odds, 0)).toBeLessThan(0.4);
  });
});
