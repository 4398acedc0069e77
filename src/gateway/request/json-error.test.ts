import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeJsonError } from "./json-error.ts";

function positionOf(text: string): number {
  return Number(/position (\d+)/.exec(describeJsonError(text))?.[1]);
}

describe("describeJsonError", () => {
  it.each([
    ['{"a":x}', 5],
    ['{"a" 1}', 5],
    ['{"a":1,}', 7],
    ["[1,]", 3],
    ["{,}", 1],
    ['{"a":01}', 6],
    ['{"a":1}}', 7],
    ['{"a":"\\q"}', 6],
    ['{"a":"line\nbreak"}', 10],
    ["{'a':1}", 1],
    ['{"a":[1}', 7],
    ["nul", 0],
  ])("points at the first wrong character of %j", (text, position) => {
    expect(positionOf(text)).toBe(position);
  });

  it.each(["{", '{"a', '{"a":', '{"a":[1,2', '{"a":1'])("says that %j ends too early", (text) => {
    expect(describeJsonError(text)).toContain("ends too early");
    expect(positionOf(text)).toBe(text.length);
  });

  it("counts lines and columns from one", () => {
    expect(describeJsonError('{\n  "a": 1,\n  b\n}')).toBe(
      "The body is not valid JSON: unexpected character at line 3, column 3 (position 14).",
    );
  });

  it.each(["", "  \n"])("calls %j empty", (text) => {
    expect(describeJsonError(text)).toContain("empty");
  });

  it("never quotes the body", () => {
    expect(describeJsonError('{"secret": hunter2}')).not.toMatch(/secret|hunter2/);
  });

  it("survives any nesting", () => {
    expect(positionOf("[".repeat(500_000))).toBe(500_000);
  });

  it("finds all of a valid text valid", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(positionOf(text)).toBe(text.length);
      }),
    );
  });

  it("points at a control character wherever it was put in, for no JSON has one there", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, seed) => {
        const at = seed % (text.length + 1);
        const position = positionOf(`${text.slice(0, at)}\u0001${text.slice(at)}`);
        // An escape or a word that it cuts in two is wrong from its beginning.
        expect(position).toBeLessThanOrEqual(at);
        expect(at - position).toBeLessThan(6);
      }),
    );
  });
});
