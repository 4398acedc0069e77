import { describe, expect, it } from "vitest";
import { formatProblem } from "./problem.ts";
import { readEndpoint, readEndpointList } from "./read-endpoints.ts";

const list = (text: string) => readEndpointList({ name: "found.yaml", text }, { KEY: "sesame" });

describe("a list of endpoints in a file of its own", () => {
  it("is read as `endpoints` is, variables included", () => {
    const read = list(`- a:1\n- { url: "b:1", weight: 2, apiKey: "\${KEY}" }\n`);
    expect(read.ok && read.value.map(({ id, url, weight }) => [id, url, weight])).toEqual([
      ["a:1", "http://a:1", 1],
      ["b:1", "http://b:1", 2],
    ]);
    expect(read.ok && read.value[1]?.apiKey?.reveal()).toBe("sesame");
  });

  it("may be JSON, and may be empty", () => {
    expect(list('[{"url": "http://a:1"}]').ok).toBe(true);
    expect(list("[]")).toEqual({ ok: true, value: [] });
  });

  it.each([
    ["nothing at all", "", "found.yaml"],
    ["a mapping", "url: a:1", "found.yaml"],
    ["a bad weight", '- { url: "a:1", weight: -1 }', "[0].weight is -1, expected a number of at least 0"],
    ["one URL twice", "- a:1\n- a:1\n", "[1]"],
    ["one id for two", '- { url: "a:1", id: x }\n- { url: "b:1", id: x }\n', "[1]"],
  ])("is refused with %s, and says where", (_what, text, said) => {
    const read = list(text);
    expect(read.ok ? [] : read.problems.map(formatProblem).join("\n")).toContain(said);
  });
});

describe("one endpoint as a value", () => {
  it("is read as an entry of `endpoints`", () => {
    const read = readEndpoint({ url: "10.0.0.7:8000", maxRequests: 8 });
    expect(read.ok && [read.value.id, read.value.maxRequests]).toEqual(["10.0.0.7:8000", 8]);
  });

  it("is refused with what is wrong and where", () => {
    const read = readEndpoint({ url: "10.0.0.7:8000", weight: "heavy", colour: "red" });
    expect(read.ok ? [] : read.problems.map(formatProblem)).toEqual([
      'weight is "heavy", expected a number',
      expect.stringContaining("colour is not a setting"),
    ]);
  });
});
