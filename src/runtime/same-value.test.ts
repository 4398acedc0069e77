import { describe, expect, it } from "vitest";
import { Secret } from "../config/index.ts";
import { differing, isSameValue } from "./same-value.ts";

describe("isSameValue", () => {
  it.each([
    ["numbers", 1, 1, 2],
    ["texts", "a", "a", "b"],
    ["lists", [1, [2]], [1, [2]], [1, [3]]],
    ["lists of another length", [1], [1], [1, 2]],
    ["mappings", { a: { b: 1 } }, { a: { b: 1 } }, { a: { b: 2 } }],
    ["maps", new Map([["a", [1]]]), new Map([["a", [1]]]), new Map([["a", [2]]])],
    ["secrets, by what they hide", new Secret("k"), new Secret("k"), new Secret("l")],
    ["bytes", Buffer.from("ab"), Buffer.from("ab"), Buffer.from("ac")],
    ["nothing", null, null, undefined],
    ["lists and mappings", [], [], {}],
    ["secrets and texts", new Secret("k"), new Secret("k"), "k"],
    ["maps and mappings", new Map(), new Map(), {}],
  ])("tells %s apart", (_, a, same, other) => {
    expect(isSameValue(a, same)).toBe(true);
    expect(isSameValue(a, other)).toBe(false);
    expect(isSameValue(other, a)).toBe(false);
  });

  it("takes a setting that is undefined for one that is absent", () => {
    expect(isSameValue({ a: 1, b: undefined }, { a: 1 })).toBe(true);
  });
});

it("names the settings that differ", () => {
  expect(differing(["a", "b"], { a: [1], b: 2 }, { a: [1], b: 3 })).toEqual(["b"]);
});
