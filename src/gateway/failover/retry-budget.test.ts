import { describe, expect, it } from "vitest";
import { type BudgetLimits, RetryBudget } from "./retry-budget.ts";

const FIFTH: BudgetLimits = { ratio: 0.2, minPerSecond: 0 };

/** Withdraws for as long as it may. @returns how often. */
function drain(budget: RetryBudget, limits: BudgetLimits, nowMs: number): number {
  let withdrawn = 0;
  while (withdrawn < 10_000 && budget.covers(limits, nowMs)) {
    budget.withdraw(nowMs);
    withdrawn++;
  }
  return withdrawn;
}

function deposit(budget: RetryBudget, count: number, nowMs: number): void {
  for (let i = 0; i < count; i++) budget.deposit(nowMs);
}

describe("RetryBudget", () => {
  it.each([
    { deposits: 0, limits: FIFTH, allowed: 0 },
    { deposits: 4, limits: FIFTH, allowed: 0 },
    { deposits: 5, limits: FIFTH, allowed: 1 },
    { deposits: 1000, limits: FIFTH, allowed: 200 },
    { deposits: 0, limits: { ratio: 0.2, minPerSecond: 1 }, allowed: 10 },
    { deposits: 1000, limits: { ratio: 0.2, minPerSecond: 1 }, allowed: 210 },
    { deposits: 30, limits: { ratio: 0.1, minPerSecond: 0 }, allowed: 3 },
    { deposits: 10, limits: { ratio: 0, minPerSecond: 0 }, allowed: 0 },
  ])("allows $allowed after $deposits deposits under $limits", ({ deposits, limits, allowed }) => {
    const budget = new RetryBudget();
    deposit(budget, deposits, 5_000);
    expect(drain(budget, limits, 5_000)).toBe(allowed);
  });

  it("forgets deposits and withdrawals that are older than its window", () => {
    const budget = new RetryBudget(10_000);
    deposit(budget, 100, 0);
    expect(drain(budget, FIFTH, 0)).toBe(20);
    expect(budget.covers(FIFTH, 9_900)).toBe(false);
    deposit(budget, 50, 9_900);
    expect(drain(budget, FIFTH, 9_900)).toBe(10);
    expect(budget.covers(FIFTH, 10_100)).toBe(false);
    expect(budget.covers({ ratio: 0.2, minPerSecond: 0.1 }, 10_100)).toBe(true);
    expect(budget.covers(FIFTH, 1_000_000)).toBe(false);
  });

  it("counts a withdrawal that it did not cover against those that come after", () => {
    const budget = new RetryBudget();
    for (let i = 0; i < 3; i++) budget.withdraw(0);
    deposit(budget, 20, 0);
    expect(drain(budget, FIFTH, 0)).toBe(1);
  });

  it("takes other limits at once", () => {
    const budget = new RetryBudget();
    deposit(budget, 100, 0);
    expect(drain(budget, FIFTH, 0)).toBe(20);
    expect(drain(budget, { ratio: 0.5, minPerSecond: 0 }, 0)).toBe(30);
    expect(budget.covers(FIFTH, 0)).toBe(false);
  });

  it("never allows more than its share in any window, however traffic comes", () => {
    const budget = new RetryBudget(10_000);
    const sent: number[] = [];
    const retried: number[] = [];
    for (let nowMs = 0; nowMs < 60_000; nowMs += 7) {
      const requests = Math.floor(nowMs / 5_000) % 2 === 0 ? 3 : 1;
      deposit(budget, requests, nowMs);
      for (let i = 0; i < requests; i++) sent.push(nowMs);
      if (!budget.covers(FIFTH, nowMs)) continue;
      budget.withdraw(nowMs);
      retried.push(nowMs);
    }
    const within = (times: readonly number[], toMs: number): number =>
      times.filter((ms) => ms > toMs - 9_000 && ms <= toMs).length;
    for (let toMs = 20_000; toMs < 60_000; toMs += 500) {
      // Tenths of a window leave it together: up to one of them may be counted on one side alone.
      expect(within(retried, toMs)).toBeLessThanOrEqual(0.2 * (within(sent, toMs) + 3 * 143) + 1);
    }
    expect(retried.length / sent.length).toBeGreaterThan(0.15);
  });
});
