import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type MetricSample, parsePrometheusText } from "./prometheus-text.ts";

const parse = (text: string): MetricSample[] => parsePrometheusText(text, () => true);
const firstValue = (text: string): number | undefined => parse(text)[0]?.value;
const labelsOf = (text: string): object => Object.fromEntries(parse(text)[0]?.labels ?? []);

describe("parsePrometheusText", () => {
  it.each<[string, string, number | undefined]>([
    ["an integer", "x 5", 5],
    ["a fraction", "x 0.25", 0.25],
    ["a fraction without its zero", "x .5", 0.5],
    ["a number that ends in its point", "x 3.", 3],
    ["an exponent", "x 1e+02", 100],
    ["a capital exponent", "x 1.5E-3", 0.0015],
    ["a signed number", "x -2", -2],
    ["a value before a time stamp", "x 7 1716239022000", 7],
    ["a value before an exemplar", 'x 7 # {trace_id="a"} 1 1.5', 7],
    ["tabs for blanks", "x\t8\t1", 8],
    ["blanks before the name", "  x 9", 9],
    ["a line that ends in CR", "x 4\r\ny 5", 4],
    ["labels without a blank behind them", 'x{a="b"}6', 6],
    ["empty labels", "x{} 6", 6],
    ["NaN", "x NaN", undefined],
    ["positive infinity", "x +Inf", undefined],
    ["negative infinity", "x -Inf", undefined],
    ["a number too large to hold", "x 1e999", undefined],
    ["a hexadecimal number", "x 0x10", undefined],
    ["a number with something behind it", "x 5s", undefined],
    ["no value", "x", undefined],
    ["no value behind labels", 'x{a="b"}', undefined],
    ["a name that goes on", "x-y 5", undefined],
    ["a comment", "# x 5", undefined],
    ["an open brace", 'x{a="b" 5', undefined],
    ["an open quote", 'x{a="b} 5', undefined],
    ["a label without quotes", "x{a=b} 5", undefined],
    ["a label without a value", "x{a} 5", undefined],
    ["labels without a comma", 'x{a="b" c="d"} 5', undefined],
    ["a quote that ends in its escape", 'x{a="b\\', undefined],
  ])("reads %s", (_name, text, expected) => {
    expect(firstValue(text)).toBe(expected);
  });

  it.each<[string, string, object]>([
    ["one label", 'x{a="1"} 0', { a: "1" }],
    ["several, with a last comma", 'x{a="1",b="2",} 0', { a: "1", b: "2" }],
    ["blanks between the parts", 'x { a = "1" , b = "2" } 0', { a: "1", b: "2" }],
    ["escapes", String.raw`x{a="q\"b\\n\n"} 0`, { a: 'q"b\\n\n' }],
    ["braces and commas in quotes", 'x{a="{b=\\"c\\"},d"} 0', { a: '{b="c"},d' }],
    ["names that objects have of their own", 'x{constructor="1"} 0', { constructor: "1" }],
  ])("reads labels: %s", (_name, text, expected) => {
    expect(labelsOf(text)).toEqual(expected);
  });

  it("goes on behind a line that does not parse", () => {
    expect(parse("# HELP x\nx{ 1\n\n<html>\ny 2").map(({ name, value }) => [name, value])).toEqual([["y", 2]]);
  });

  it("leaves out names that are not wanted", () => {
    expect(parsePrometheusText("x 1\ny 2", (name) => name === "y").map(({ name }) => name)).toEqual(["y"]);
  });

  it("skips a line beyond all measure and keeps the next", () => {
    expect(parse(`x{a="${"b".repeat(50_000)}"} 1\ny 2`).map(({ name }) => name)).toEqual(["y"]);
  });

  it("stops at a bounded number of samples", () => {
    expect(parse("x 1\n".repeat(30_000)).length).toBe(20_000);
  });

  it("reads back what it is given, whatever the labels hold", () => {
    const label = fc.stringMatching(/^[a-z_]{1,8}$/);
    fc.assert(
      fc.property(
        fc.dictionary(label, fc.string({ unit: "binary" }), { noNullPrototype: true }),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        (labels, value) => {
          const written = Object.entries(labels).map(([name, text]) => `${name}="${escapeLabel(text)}"`);
          expect(parse(`x{${written.join(",")}} ${value}`)).toEqual([
            { name: "x", labels: new Map(Object.entries(labels)), value: value === 0 ? Number(String(value)) : value },
          ]);
        },
      ),
    );
  });

  it("throws at nothing", () => {
    const fragment = fc.constantFrom("x", "{", "}", '"', "\\", ",", "=", "1", " ", "\n", "#", "NaN", "é", "\u0000");
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 60 }), (fragments) => {
        for (const { value } of parse(fragments.join(""))) expect(value).toSatisfy(Number.isFinite);
      }),
    );
  });
});

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
