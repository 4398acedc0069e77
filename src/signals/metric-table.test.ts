import { describe, expect, it } from "vitest";
import { countLabel, MetricTable, shareOf, times, withExtra } from "./metric-table.ts";

const table = (...lines: readonly string[]): MetricTable => new MetricTable(lines.join("\n"), "e_");

describe("MetricTable", () => {
  it.each<[string, readonly string[], number | undefined]>([
    ["the newest name when both are there", ["e_old 1", "e_new 2"], 2],
    ["the old name when only it is there", ["e_old 1"], 1],
    ["unknown when neither is there", ["e_other 1"], undefined],
    ["the sum of two ranks", ['e_new{rank="0"} 2', 'e_new{rank="1"} 3'], 5],
    ["the ranks that gave a number", ['e_new{rank="0"} 2', 'e_new{rank="1"} NaN'], 2],
    ["the old name when the new one is not a number", ["e_new NaN", "e_old 1"], 1],
    ["unknown for a negative count", ["e_new -1"], undefined],
    ["no name that merely starts alike", ["e_new_by_reason 4"], undefined],
    ["zero as zero", ["e_new 0"], 0],
    ["unknown when the sum overflows", ['e_new{rank="0"} 1e308', 'e_new{rank="1"} 1e308'], undefined],
  ])("sums: %s", (_name, lines, expected) => {
    expect(table(...lines).sum(["e_new", "e_old"])).toBe(expected);
  });

  it("takes the fullest of several caches, full at the most", () => {
    expect(table('e_kv{rank="0"} 0.5', 'e_kv{rank="1"} 0.75').fullest(["e_kv"])).toBe(0.75);
    expect(table("e_kv 1.2").fullest(["e_kv"])).toBe(1);
    expect(table("e_x 1").fullest(["e_kv"])).toBeUndefined();
  });

  it("counts each group by its largest series", () => {
    const metrics = table('e_q{dp="0",tp="0"} 3', 'e_q{dp="0",tp="1"} 4', 'e_q{dp="1",tp="2"} 5');
    expect(metrics.sumPer("dp", ["e_q"])).toBe(9);
    expect(metrics.sumPer("dp", ["e_none"])).toBeUndefined();
  });

  it("leaves out the series a filter refuses", () => {
    expect(table('e_q{p=""} 3', 'e_q{p="high"} 2').sum(["e_q"], (labels) => labels.get("p") === "")).toBe(3);
  });

  it("ignores metrics of another prefix and histogram buckets", () => {
    const metrics = table("python_gc 1", 'e_h_bucket{le="1"} 1', "e_h_sum 1");
    expect(metrics.series("python_gc")).toEqual([]);
    expect(metrics.series("e_h_bucket")).toEqual([]);
    expect(metrics.sum(["e_h_sum"])).toBe(1);
  });
});

describe("combining values", () => {
  it("is unknown where a needed part is", () => {
    expect(times(2, undefined)).toBeUndefined();
    expect(times(undefined, 2)).toBeUndefined();
    expect(times(1e308, 1e308)).toBeUndefined();
    expect(shareOf(1, undefined)).toBeUndefined();
    expect(shareOf(undefined, 1)).toBeUndefined();
    expect(shareOf(0, 0)).toBeUndefined();
    expect(withExtra(undefined, 2)).toBeUndefined();
  });

  it("adds an extra only where it is known", () => {
    expect(withExtra(1, undefined)).toBe(1);
    expect(withExtra(1, 2)).toBe(3);
  });

  it.each<[string, number | undefined]>([
    ["128", 128],
    ["None", undefined],
    ["0", undefined],
    ["-1", undefined],
    ["1.5", undefined],
    ["99999999999999999999", undefined],
  ])("reads a label %s as a count of %s", (text, expected) => {
    expect(countLabel(new Map([["n", text]]), "n")).toBe(expected);
  });
});
