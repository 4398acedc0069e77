import { describe, expect, it } from "vitest";
import { record, resultOf } from "../../../test/support/request-records.ts";
import type { EndpointSample, SimulationResult } from "../result.ts";
import { pageData } from "./page-data.ts";
import type { Report } from "./report.ts";
import { summarize } from "./summary.ts";

const SLO = { ttftMs: 200, tpotMs: 50 };

function reportOf(results: readonly SimulationResult[], sweep: Report["sweep"] = []): Report {
  return { command: "", settings: {}, slo: SLO, results, base: undefined, sweep };
}

const sample = (running: number, kvUsedRatio = 0): EndpointSample => ({ running, waiting: 0, held: 0, kvUsedRatio });

describe("distributions of a page", () => {
  it("rise to 100 % at the slowest request of all policies", () => {
    const fast = resultOf([record({ firstTokenAtMs: 1010 }), record({ firstTokenAtMs: 1020 })], { policy: "fast" });
    const slow = resultOf([record({ firstTokenAtMs: 1020 }), record({ firstTokenAtMs: 11_000 })], { policy: "slow" });
    const [ttft] = pageData(reportOf([fast, slow])).distributions;
    expect(ttft?.latency).toBe("ttftMs");
    expect(ttft?.limitMs).toBe(200);
    const shareAt = (policy: number, ms: number): number | undefined =>
      ttft?.percents[policy]?.[ttft.atMs.findLastIndex((at) => at <= ms)];
    expect([10, 15, 21, 9_000, 11_100].map((ms) => shareAt(0, ms))).toEqual([50, 50, 100, 100, 100]);
    expect([10, 15, 21, 9_000, 11_100].map((ms) => shareAt(1, ms))).toEqual([0, 0, 50, 50, 100]);
  });

  it("are empty where nothing was measured", () => {
    const one = resultOf([record({ outputTokens: 1 })]);
    expect(pageData(reportOf([one])).distributions[1]).toMatchObject({ atMs: [], percents: [[]] });
  });
});

describe("timeline of a page", () => {
  it("keeps a short one as it is", () => {
    const timeline = { atMs: [0, 1000, 2000], endpoints: { a: [sample(1, 0.5), sample(2, 1), sample(3)] } };
    const { timeline: shown } = pageData(reportOf([resultOf([], { timeline })]));
    expect(shown.endpoints).toEqual(["a"]);
    expect(shown.policies[0]?.[0]?.running).toEqual([1, 2, 3]);
    expect(shown.policies[0]?.[0]?.kvPercent).toEqual([50, 100, 0]);
  });

  it("has means over 200 spans of a long one", () => {
    const atMs = Array.from({ length: 10_000 }, (_, index) => index * 10);
    const timeline = { atMs, endpoints: { a: atMs.map((at) => sample(at / 1000)) } };
    const { timeline: shown } = pageData(reportOf([resultOf([], { timeline })]));
    const running = shown.policies[0]?.[0]?.running ?? [];
    expect(running).toHaveLength(200);
    running.forEach((value, index) => {
      expect(value).toBeCloseTo(shown.atS[index] ?? Number.NaN, 0);
    });
  });

  it("leaves a gap where a policy was done earlier", () => {
    const short = { atMs: [0, 1000], endpoints: { a: [sample(1), sample(2)] } };
    const long = { atMs: [0, 1000, 2000, 3000], endpoints: { a: [sample(1), sample(1), sample(1), sample(1)] } };
    const runs = [resultOf([], { policy: "p", timeline: short }), resultOf([], { policy: "q", timeline: long })];
    expect(pageData(reportOf(runs)).timeline.policies[0]?.[0]?.running).toEqual([1, 2, null, null]);
  });
});

describe("sweep of a page", () => {
  it("has every policy at every value, and null where one was not run", () => {
    const summaryOf = (policy: string) => summarize(resultOf([record()], { policy }), SLO);
    const sweep = [
      { variable: "rate" as const, value: 2, summary: summaryOf("p") },
      { variable: "rate" as const, value: 1, summary: summaryOf("p") },
      { variable: "rate" as const, value: 1, summary: summaryOf("q") },
    ];
    const data = pageData(reportOf([], sweep));
    expect(data.policies).toEqual(["p", "q"]);
    expect(data.sweep?.values).toEqual([1, 2]);
    expect(data.sweep?.metrics[0]?.values).toEqual([
      [100, 100],
      [100, null],
    ]);
  });
});
