import { expect, it } from "vitest";
import { sampleResult } from "../../test/support/sample-results.ts";
import { joinRuns } from "./join-runs.ts";
import { summarize } from "./report/summary.ts";

const SLO = { ttftMs: 2000, tpotMs: 50 };
const shape = { policy: "p", endpoints: 2, slowness: 1, holds: true };

it("joins runs one after the other, so that rates and shares are means", () => {
  const runs = [sampleResult({ ...shape, requests: 300 }), sampleResult({ ...shape, requests: 200 })] as const;
  const [first, second] = runs.map((run) => summarize(run, SLO));
  const joined = joinRuns(runs);
  const summary = summarize(joined, SLO);
  expect(summary.requests).toBe(500);
  expect(summary.preemptions).toBe((first?.preemptions ?? 0) + (second?.preemptions ?? 0));
  expect(summary.goodputRatio).toBeCloseTo(0.6 * (first?.goodputRatio ?? 0) + 0.4 * (second?.goodputRatio ?? 0), 12);
  const [least, most] = [first, second].map((each) => each?.outputTokensPerSecond ?? 0).toSorted((a, b) => a - b);
  expect(summary.outputTokensPerSecond).toBeGreaterThan(0.95 * (least ?? 0));
  expect(summary.outputTokensPerSecond).toBeLessThan(most ?? 0);
  expect(joined.timeline.atMs).toEqual(joined.timeline.atMs.toSorted((a, b) => a - b));
  for (const samples of Object.values(joined.timeline.endpoints))
    expect(samples).toHaveLength(joined.timeline.atMs.length);
});

it("leaves a single run as it is", () => {
  const run = sampleResult({ ...shape, requests: 10 });
  expect(joinRuns([run])).toBe(run);
});
