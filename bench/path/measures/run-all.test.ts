import { describe, expect, it } from "vitest";
import type { RequestLoad } from "../load.ts";
import type { Origins } from "../origins.ts";
import type { Measure, MeasurePlan } from "./measure.ts";
import { runAll } from "./run-all.ts";

const plan: MeasurePlan = {
  bench: { origins: {} as Origins, requests: {} as RequestLoad, scratch: "", progress: () => {} },
  peers: [],
  rounds: 1,
  recordPeers: [],
  memoryRequests: 1,
};

const verdict = { measure: "m", target: "t", measured: "1", isMet: true };

describe("runAll", () => {
  it("goes on after a measure that broke off, and says so", async () => {
    const broken: Measure = { name: "broken", run: () => Promise.reject(new Error("no luck")) };
    const whole: Measure = {
      name: "whole",
      run: async () => ({ verdicts: [verdict], text: "fine", result: { figure: 1 }, hasFailed: false }),
    };
    const told: string[] = [];
    const report = await runAll([broken, whole], plan, (name, text) => told.push(`${name}: ${text}`));
    expect(told).toEqual(["broken: FAILED: no luck", "whole: fine"]);
    expect(report).toMatchObject({
      measures: { whole: { figure: 1 } },
      verdicts: [verdict],
      failures: ["broken: no luck"],
    });
  });
});
