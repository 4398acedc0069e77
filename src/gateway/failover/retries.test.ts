import { describe, expect, it } from "vitest";
import type { FailoverConfig } from "../../runtime/index.ts";
import type { Failure } from "./failure.ts";
import { Retries, type RetryBounds, type RetryDenial } from "./retries.ts";
import { RetryBudget } from "./retry-budget.ts";

const LIMITS: FailoverConfig = {
  attempts: 3,
  resends: 1,
  slowResends: 1,
  budgetRatio: 0,
  minRetriesPerSecond: 1,
  guardMs: 1_000,
};

function retries(bounds: Partial<RetryBounds> = {}, limits: Partial<FailoverConfig> = {}): Retries {
  return new Retries({
    limits: { ...LIMITS, ...limits },
    budget: new RetryBudget(),
    patienceEndsAtMs: Number.POSITIVE_INFINITY,
    isNested: false,
    isRepeatable: true,
    ...bounds,
  });
}

/** Attempts that fail so one after the other. @returns what was said after each; undefined: go on. */
function askAfter(request: Retries, failures: readonly Failure[], nowMs = 0): (RetryDenial | undefined)[] {
  return failures.map((failure) => {
    request.begin(nowMs);
    request.failed(failure);
    return request.ask(failure, nowMs);
  });
}

describe("the retries of a request", () => {
  it.each<{ failures: readonly Failure[]; limits?: Partial<FailoverConfig>; answers: (RetryDenial | undefined)[] }>([
    { failures: ["unconnected", "unconnected", "unconnected"], answers: [undefined, undefined, "attempts"] },
    { failures: ["busy", "failed", "busy"], answers: [undefined, undefined, "attempts"] },
    { failures: ["lost", "lost"], answers: [undefined, "resends"] },
    { failures: ["slow", "slow"], answers: [undefined, "resends"] },
    { failures: ["slow", "lost"], answers: [undefined, undefined] },
    { failures: ["lost", "unconnected", "busy"], answers: [undefined, undefined, "attempts"] },
    { failures: ["lost", "busy"], answers: [undefined, undefined] },
    { failures: ["lost"], limits: { resends: 0 }, answers: ["resends"] },
    { failures: ["slow"], limits: { slowResends: 0 }, answers: ["resends"] },
    { failures: ["unconnected", "busy"], limits: { resends: 0 }, answers: [undefined, undefined] },
    { failures: ["busy"], limits: { attempts: 1 }, answers: ["attempts"] },
  ])("after $failures under $limits are answered $answers", ({ failures, limits = {}, answers }) => {
    expect(askAfter(retries({}, limits), failures)).toEqual(answers);
  });

  it.each<{ failure: Failure; denial: RetryDenial | undefined }>([
    { failure: "busy", denial: "budget" },
    { failure: "failed", denial: "budget" },
    { failure: "slow", denial: "budget" },
    { failure: "lost", denial: undefined },
    { failure: "unconnected", denial: undefined },
  ])("with nothing left in the budget: $denial after $failure", ({ failure, denial }) => {
    expect(askAfter(retries({}, { minRetriesPerSecond: 0 }), [failure])).toEqual([denial]);
  });

  it.each<{ failure: Failure; costs: boolean }>([
    { failure: "busy", costs: true },
    { failure: "slow", costs: true },
    { failure: "lost", costs: true },
    { failure: "unconnected", costs: false },
  ])("after $failure takes from the budget: $costs", ({ failure, costs }) => {
    const budget = new RetryBudget();
    askAfter(retries({ budget }), [failure]);
    expect(budget.covers({ ratio: 0, minPerSecond: 0.1 }, 0)).toBe(!costs);
  });

  it("takes nothing from the budget for a retry that is denied for another reason", () => {
    const budget = new RetryBudget();
    askAfter(retries({ budget }, { attempts: 1 }), ["busy"]);
    askAfter(retries({ budget }, { slowResends: 0 }), ["slow"]);
    expect(budget.covers({ ratio: 0, minPerSecond: 0.1 }, 0)).toBe(true);
  });

  it("counts once as a request in the budget, however often it is sent", () => {
    const budget = new RetryBudget();
    askAfter(retries({ budget }), ["unconnected", "unconnected", "unconnected"]);
    expect(budget.covers({ ratio: 1, minPerSecond: 0 }, 0)).toBe(true);
    expect(budget.covers({ ratio: 0.5, minPerSecond: 0 }, 0)).toBe(false);
  });

  it("end with the client's patience, whatever the failure", () => {
    for (const failure of ["unconnected", "lost", "busy"] as const) {
      expect(askAfter(retries({ patienceEndsAtMs: 500 }), [failure], 499)).toEqual([undefined]);
      expect(askAfter(retries({ patienceEndsAtMs: 500 }), [failure], 500)).toEqual(["patience"]);
    }
  });

  it("are left to whoever sent the request here, but for connections that were not found", () => {
    for (const failure of ["lost", "slow", "busy", "failed"] as const) {
      expect(askAfter(retries({ isNested: true }), [failure])).toEqual(["nested"]);
    }
    expect(askAfter(retries({ isNested: true }), ["unconnected"])).toEqual([undefined]);
  });

  it("are none after an endpoint may have done what must not be done twice", () => {
    for (const failure of ["lost", "slow", "failed"] as const) {
      expect(askAfter(retries({ isRepeatable: false }), [failure])).toEqual(["unrepeatable"]);
    }
    for (const failure of ["unconnected", "busy"] as const) {
      expect(askAfter(retries({ isRepeatable: false }), [failure])).toEqual([undefined]);
    }
  });

  it("counts what was lost beside another attempt too", () => {
    const request = retries();
    request.begin(0);
    request.begin(0);
    request.failed("lost");
    request.failed("lost");
    expect(request.ask("lost", 0)).toBe("resends");
  });

  it("may be followed by one beside the first only as long as there may be another at all", () => {
    const request = retries({ patienceEndsAtMs: 500 }, { attempts: 2 });
    request.begin(0);
    expect(request.mayBegin(499)).toBe(true);
    expect(request.mayBegin(500)).toBe(false);
    request.begin(0);
    expect(request.mayBegin(0)).toBe(false);
    expect(request.begun).toBe(2);
  });
});
