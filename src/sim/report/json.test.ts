import { describe, expect, it } from "vitest";
import { record, refusedRecord, resultOf } from "../../../test/support/request-records.ts";
import { reportJson } from "./json.ts";
import type { Report } from "./report.ts";
import { summarize } from "./summary.ts";

const SLO = { ttftMs: 200, tpotMs: 50 };
const REPORT: Report = {
  command: "evenkeel simulate w",
  settings: { fleet: "2*f" },
  slo: SLO,
  results: [resultOf([record()])],
  base: undefined,
  sweep: [],
};

describe("reportJson", () => {
  it("has every key, in a fixed order", () => {
    const written = JSON.parse(JSON.stringify(reportJson(REPORT)));
    expect(Object.keys(written)).toEqual(["format", "command", "settings", "slo", "policies", "sweep"]);
    expect(written.sweep).toBeNull();
    expect(Object.keys(written.policies[0])).toMatchInlineSnapshot(`
      [
        "policy",
        "workload",
        "fleet",
        "seed",
        "requests",
        "ended",
        "refused",
        "unfinished",
        "goodputRatio",
        "outputTokensPerSecond",
        "hitRatio",
        "longestHoldMs",
        "ttftMs",
        "tpotMs",
        "e2eMs",
        "requestSpread",
        "workSpread",
        "preemptions",
        "wallMs",
      ]
    `);
  });

  it("writes null for latencies that do not exist, under the same keys", () => {
    const keysOf = (report: Report): string[] => Object.keys(reportJson(report).policies[0] ?? {});
    const empty = { ...REPORT, results: [resultOf([refusedRecord()])] };
    expect(reportJson(empty).policies[0]).toMatchObject({ ttftMs: null, tpotMs: null, e2eMs: null });
    expect(keysOf(empty)).toEqual(keysOf(REPORT));
  });

  it("has the points of a sweep and the capacity they show", () => {
    const point = (value: number, requests: Parameters<typeof resultOf>[0]) => ({
      variable: "rate" as const,
      value,
      summary: summarize(resultOf(requests), SLO),
    });
    const sweep = [point(1, [record()]), point(2, [refusedRecord()])];
    const written = reportJson({ ...REPORT, sweep }).sweep;
    expect(written?.variable).toBe("rate");
    expect(written?.points.map(({ value, summary }) => [value, summary.goodputRatio])).toEqual([
      [1, 1],
      [2, 0],
    ]);
    expect(written?.capacities).toEqual([{ policy: "least_delay", value: 1 }]);
  });
});
