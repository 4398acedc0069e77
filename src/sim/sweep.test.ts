import { describe, expect, it } from "vitest";
import type { Summary } from "./report/summary.ts";
import { capacitiesOf } from "./report/sweep.ts";
import { parseSweep, sweep } from "./sweep.ts";

/** A fleet whose goodput is 1 up to a capacity and falls behind it. */
function summaryWith(goodputRatio: number): Summary {
  return { policy: "p", goodputRatio } as Summary;
}

const upTo = (capacity: number) => async (rate: number) => summaryWith(rate <= capacity ? 1 : 0.5);
const from = (needed: number) => async (engines: number) => summaryWith(engines >= needed ? 0.95 : 0.2);

describe("parseSweep", () => {
  it("reads what to vary, from where to where, and the step", () => {
    expect(parseSweep("rate=1..4/0.5")).toEqual({ variable: "rate", from: 1, to: 4, step: 0.5 });
    expect(parseSweep("endpoints=4..16")).toEqual({ variable: "endpoints", from: 4, to: 16, step: undefined });
  });

  it.each([
    ["speed=1..2", /is no sweep; expected rate=FROM..TO or endpoints=FROM..TO/],
    ["rate=4..1", /the smaller one first/],
    ["rate=0..1", /above 0/],
    ["rate=1..2/0", /a step must be above 0/],
    ["endpoints=1.5..4", /whole numbers/],
  ])("says of %j what would be right", (text, message) => {
    expect(() => parseSweep(text)).toThrow(message);
  });
});

describe("sweep", () => {
  it("takes every step, and both ends", async () => {
    const points = await sweep(parseSweep("rate=1..2/0.3"), upTo(1.5));
    expect(points.map(({ value }) => value)).toEqual([1, 1.3, 1.6, 1.9, 2]);
    expect(capacitiesOf(points)).toEqual([{ policy: "p", value: 1.3 }]);
  });

  it("finds the capacity to two percent without steps", async () => {
    const points = await sweep(parseSweep("rate=1..8"), upTo(3.3));
    const [capacity] = capacitiesOf(points);
    expect(capacity?.value).toBeGreaterThan(3.3 / 1.02);
    expect(capacity?.value).toBeLessThanOrEqual(3.3);
    expect(points.length).toBeLessThan(12);
  });

  it("finds exactly how many endpoints are needed", async () => {
    const points = await sweep(parseSweep("endpoints=2..32"), from(11));
    expect(capacitiesOf(points)).toEqual([{ policy: "p", value: 11 }]);
    expect(points.length).toBeLessThan(9);
  });

  it.each([
    ["rate=1..4", upTo(10), 4],
    ["rate=1..4", upTo(0.5), undefined],
    ["endpoints=2..4", from(1), 2],
    ["endpoints=2..4", from(9), undefined],
  ])("looks no further in %s when both ends say the same", async (text, run, value) => {
    const points = await sweep(parseSweep(text), run);
    expect(points).toHaveLength(2);
    expect(capacitiesOf(points)).toEqual([{ policy: "p", value }]);
  });
});
