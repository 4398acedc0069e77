import { describe, expect, it } from "vitest";
import type { Figures, PolicyComparison, ScenarioResult } from "./run.ts";
import { LEAST_DELAY, NOT_HELD } from "./scenarios.ts";
import { faultsOf, gainOf } from "./verdict.ts";

const FIGURES: Figures = {
  ttftMs: 100,
  tpotMs: 50,
  e2eMs: 5_000,
  ended: 10,
  promptTokens: 1_000,
  outputTokens: 1_000,
  hitRatio: 0,
  heldRatio: 0,
  longestHoldMs: 0,
  preemptions: 0,
};
const NONE = { ttftMs: 0, tpotMs: 0, e2eMs: 0 };

describe("faultsOf", () => {
  it("finds none where both sides agree within a tenth", () => {
    expect(faultsOf(result("fidelity", [comparison("a", { difference: { ...NONE, ttftMs: -0.099 } })]))).toEqual([]);
  });

  it.each([0.11, -0.11, Number.NaN])("names the latency that is %d off", (ttftMs) => {
    const [fault] = faultsOf(result("fidelity", [comparison("a", { difference: { ...NONE, ttftMs } })]));
    expect(fault).toMatch(/^case, a: ttftMs is /);
  });

  it("names requests that failed, and another number of ends", () => {
    const faults = faultsOf(
      result("fidelity", [comparison("a", { failures: ["reset"], live: { ...FIGURES, ended: 9 } })]),
    );
    expect(faults).toEqual(["case, a: 1 requests failed, such as: reset", "case, a: 9 ended live, 10 simulated"]);
  });

  it("asks a scenario that shows a gain for no more than that", () => {
    const far = { difference: { ...NONE, ttftMs: 0.5 } };
    const notHeld = comparison(NOT_HELD.label, { ...far, live: slower(2), simulated: slower(2) });
    expect(faultsOf(result("gain", [comparison(LEAST_DELAY.label, far), notHeld]))).toEqual([]);
  });

  it.each(["live", "simulated"])("says that nothing is gained where it is not so %s", (side) => {
    const notHeld = comparison(NOT_HELD.label, { live: slower(2), simulated: slower(2), [side]: slower(0.9) });
    expect(faultsOf(result("gain", [comparison(LEAST_DELAY.label, {}), notHeld]))).toEqual([
      "case: late binding gains nothing",
    ]);
  });
});

describe("gainOf", () => {
  it("compares the policy with itself without holding, side by side", () => {
    const notHeld = comparison(NOT_HELD.label, { live: slower(2), simulated: slower(4) });
    expect(gainOf(result("gain", [comparison(LEAST_DELAY.label, {}), notHeld]))).toEqual({
      live: { ttftMs: 0.5, tpotMs: 0.5, e2eMs: 0.5 },
      simulated: { ttftMs: 0.25, tpotMs: 0.25, e2eMs: 0.25 },
    });
  });

  it("knows none where one of the two is missing", () => {
    expect(gainOf(result("gain", [comparison(LEAST_DELAY.label, {})]))).toBeUndefined();
  });
});

function slower(factor: number): Figures {
  const { ttftMs, tpotMs, e2eMs } = FIGURES;
  return { ...FIGURES, ttftMs: factor * ttftMs, tpotMs: factor * tpotMs, e2eMs: factor * e2eMs };
}

function comparison(policy: string, known: Partial<PolicyComparison>): PolicyComparison {
  const cpu = { processes: {}, machine: 0, saturated: 0 };
  return {
    policy,
    live: FIGURES,
    simulated: FIGURES,
    difference: NONE,
    chance: NONE,
    failures: [],
    cpu,
    ...known,
  };
}

function result(shows: ScenarioResult["shows"], policies: readonly PolicyComparison[]): ScenarioResult {
  return { name: "case", shows, workload: "w", fleet: "f", requests: 10, policies };
}
