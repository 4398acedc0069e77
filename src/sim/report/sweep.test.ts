import { describe, expect, it } from "vitest";
import { record, refusedRecord, resultOf } from "../../../test/support/request-records.ts";
import { summarize } from "./summary.ts";
import { capacitiesOf, type SweepPoint, type SweepVariable } from "./sweep.ts";

/** Ten requests of which `good` were answered in time. */
function point(variable: SweepVariable, value: number, good: number, policy = "p"): SweepPoint {
  const requests = Array.from({ length: 10 }, (_, index) => (index < good ? record() : refusedRecord()));
  return { variable, value, summary: summarize(resultOf(requests, { policy }), { ttftMs: 1000, tpotMs: 100 }) };
}

describe("capacitiesOf", () => {
  it.each<[string, SweepPoint[], number | undefined]>([
    ["the largest rate that is carried", [point("rate", 1, 10), point("rate", 2, 9), point("rate", 3, 8)], 2],
    ["in whatever order", [point("rate", 3, 8), point("rate", 2, 9), point("rate", 1, 10)], 2],
    ["nothing beyond a rate that fails", [point("rate", 1, 9), point("rate", 2, 8), point("rate", 3, 9)], 1],
    [
      "the fewest endpoints that carry it",
      [point("endpoints", 4, 2), point("endpoints", 6, 9), point("endpoints", 8, 10)],
      6,
    ],
    ["nothing where all fail", [point("rate", 1, 3)], undefined],
  ])("finds %s", (_, sweep, value) => {
    expect(capacitiesOf(sweep)).toEqual([{ policy: "p", value }]);
  });

  it("keeps policies apart, in their order", () => {
    const sweep = [
      point("rate", 1, 10, "b"),
      point("rate", 1, 10, "a"),
      point("rate", 2, 10, "b"),
      point("rate", 2, 0, "a"),
    ];
    expect(capacitiesOf(sweep)).toEqual([
      { policy: "b", value: 2 },
      { policy: "a", value: 1 },
    ]);
  });
});
