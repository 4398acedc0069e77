import { describe, expect, it } from "vitest";
import { TraceRow, traceLines } from "./trace-text.ts";

describe("traceLines", () => {
  it.each([
    ["a text", "a\r\n\n  \nb\n"],
    ["lines", ["a", "", "  ", "b"]],
  ])("counts blank lines of %s but passes over them", (_, source) => {
    expect([...traceLines(source)]).toEqual([
      { number: 1, text: "a" },
      { number: 4, text: "b" },
    ]);
  });

  it("needs no line break at the end", () => {
    expect([...traceLines("a\nb")].map(({ text }) => text)).toEqual(["a", "b"]);
  });
});

describe("TraceRow", () => {
  const row = TraceRow.ofLine({ number: 3, text: '{"a":null,"b":["x",1],"c":{"d":2.5},"e":"text"}' });

  it("takes null as absent", () => {
    expect(["a", "e", "z"].map((key) => row.has(key))).toEqual([false, true, false]);
  });

  it.each([
    ["a text", () => row.text("c"), 'line 3: c: expected a text, got {"d":2.5}'],
    ["texts", () => row.texts("b"), 'line 3: b: expected a list of texts, got ["x",1]'],
    ["a row", () => row.row("e"), 'line 3: e: expected a JSON object, got "text"'],
    ["rows", () => row.rows("b"), 'line 3: b[0]: expected a JSON object, got "x"'],
    ["a whole number", () => row.row("c").count("d"), "line 3: c: d: expected a whole number of at least 0, got 2.5"],
  ])("names the place where %s was expected", (_, read, message) => {
    expect(read).toThrow(message);
  });

  it("cuts long values in messages", () => {
    expect(() => TraceRow.ofLine({ number: 1, text: "x".repeat(1000) })).toThrow(/^line 1: .{30,120}\.\.\.$/);
  });
});
