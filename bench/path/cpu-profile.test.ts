import { describe, expect, it } from "vitest";
import { type CpuProfile, selfTimes } from "./cpu-profile.ts";

const frame = (functionName: string, url = "", lineNumber = -1): CpuProfile["nodes"][number]["callFrame"] => ({
  functionName,
  url,
  lineNumber,
});

/** Samples at 1000, 2000, 4000 and 5000 us; each stands for the time to the next. */
const PROFILE: CpuProfile = {
  startTime: 0,
  nodes: [
    { id: 1, callFrame: frame("(idle)") },
    { id: 2, callFrame: frame("decide", "file:///home/me/evenkeel/dist/core/balancer.js", 9) },
    { id: 3, callFrame: frame("decide", "file:///home/me/evenkeel/dist/core/balancer.js", 9) },
  ],
  samples: [2, 3, 1, 2],
  timeDeltas: [1000, 1000, 2000, 1000],
};

describe("selfTimes", () => {
  it("adds up a function wherever it was called from, and leaves idling out", () => {
    expect(selfTimes(PROFILE, 0, 10_000)).toEqual([{ label: "decide dist/core/balancer.js:10", ms: 3 }]);
  });

  it("counts only samples between the two moments", () => {
    expect(selfTimes(PROFILE, 1500, 10_000)).toEqual([{ label: "decide dist/core/balancer.js:10", ms: 2 }]);
  });
});
