import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { record } from "../../../test/support/request-records.ts";
import { e2eMs, latenciesOf, quantile, shareWithin, summarizeLatency, tpotMs, ttftMs } from "./latencies.ts";

describe("latencies of a request", () => {
  it.each([
    ["a whole answer", {}, 100, 10, 190],
    ["an answer of one token", { outputTokens: 1, endedAtMs: 1100 }, 100, undefined, 100],
    ["an answer that was cut", { endedAtMs: undefined }, 100, undefined, undefined],
    ["no answer", { firstTokenAtMs: undefined, endedAtMs: undefined }, undefined, undefined, undefined],
  ])("measures %s", (_, changes, ttft, tpot, e2e) => {
    const measured = record(changes);
    expect([ttftMs(measured), tpotMs(measured), e2eMs(measured)]).toEqual([ttft, tpot, e2e]);
  });

  it("sorts them and leaves out those that are not there", () => {
    const latencies = latenciesOf([
      record({ firstTokenAtMs: 1300 }),
      record({ firstTokenAtMs: undefined, endedAtMs: undefined }),
      record({ firstTokenAtMs: 1050, endedAtMs: undefined }),
    ]);
    expect([...latencies.ttftMs]).toEqual([50, 300]);
    expect([...latencies.e2eMs]).toEqual([190]);
  });
});

describe("quantile", () => {
  it.each([
    [0, 1],
    [0.07, 7],
    [0.5, 50],
    [0.9, 90],
    [0.99, 99],
    [1, 100],
  ])("at %d of 1 to 100 is %d", (q, expected) => {
    expect(
      quantile(
        Float64Array.from({ length: 100 }, (_, index) => index + 1),
        q,
      ),
    ).toBe(expected);
  });

  it("is the smallest value that the share does not exceed", () => {
    const values = fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 100 }), (list, percent) => {
        const sorted = Float64Array.from(list).sort();
        const found = quantile(sorted, percent / 100);
        const upTo = (limit: number): number => list.filter((value) => value <= limit).length * 100;
        expect(upTo(found)).toBeGreaterThanOrEqual(percent * list.length);
        expect(upTo(found - 1)).toBeLessThan(percent * list.length);
      }),
    );
  });
});

describe("shareWithin", () => {
  it.each([
    [0, 0],
    [1, 0.25],
    [2, 0.75],
    [2.5, 0.75],
    [9, 1],
  ])("counts what is at most %d", (limit, share) => {
    expect(shareWithin(Float64Array.of(1, 2, 2, 3), limit)).toBe(share);
  });

  it("is 0 of nothing", () => {
    expect(shareWithin(new Float64Array(0), 1)).toBe(0);
  });
});

describe("summarizeLatency", () => {
  it("has mean and quantiles", () => {
    expect(summarizeLatency(Float64Array.of(1, 2, 3, 10))).toEqual({ mean: 4, p50: 2, p90: 10, p99: 10 });
  });

  it("is undefined for nothing", () => {
    expect(summarizeLatency(new Float64Array(0))).toBeUndefined();
  });
});
