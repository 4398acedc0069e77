import { describe, expect, it } from "vitest";
import { recordedRequestLine, recordingHeaderLine } from "../../core/index.ts";
import { readRecording } from "./recording.ts";

const header = recordingHeaderLine(64);

describe("readRecording", () => {
  it("reads what a recorder writes, in order of arrival", () => {
    const text = [
      header,
      recordedRequestLine({ at: 900, in: 200, out: 7, blocks: [11, 12, 13], session: "a", tenant: "t", model: "m" }),
      recordedRequestLine({ at: 20.5, in: 10, out: 0 }),
    ].join("\n");
    expect(readRecording(text, { name: "mine" })).toEqual({
      name: "mine",
      blockTokens: 64,
      arrivals: [
        {
          atMs: 20.5,
          request: {
            promptTokens: 10,
            outputTokens: 0,
            blockIds: [],
            sessionKey: undefined,
            tenant: undefined,
            next: undefined,
          },
        },
        {
          atMs: 900,
          request: {
            promptTokens: 200,
            outputTokens: 7,
            blockIds: [11, 12, 13],
            sessionKey: "a",
            tenant: "t",
            next: undefined,
          },
        },
      ],
    });
  });

  it("takes the requests of one model", () => {
    const lines = [
      header,
      ...["a", "b", "a", undefined].map((model, at) => recordedRequestLine({ at, in: 1, out: 1, model })),
    ];
    const times = (model?: string) => readRecording(lines, { name: "r", model }).arrivals.map(({ atMs }) => atMs);
    expect(times("a")).toEqual([0, 2]);
    expect(times()).toEqual([0, 1, 2, 3]);
  });

  it.each([
    ["every problem of a line", [header, '{"at":-1,"in":"x","out":1}'], /^line 2: at: .+; in: .+$/],
    ["an element of a list", [header, '{"at":1,"in":2,"out":1,"blocks":[1,-2]}'], /^line 2: blocks: 1: /],
    ["an unknown key", [header, '{"at":1,"in":2,"out":1,"tennant":"x"}'], /^line 2: .*"tennant"/],
    ["a line cut short", [header, '{"at":1,"in'], /^line 2: expected a JSON object, got /],
    ["another version", ['{"evenkeel":"recording","version":9,"blockTokens":64}'], /^line 1: version: /],
    ["no header", [], /^line 1: expected a JSON object/],
  ])("names %s", (_, lines, message) => {
    expect(() => readRecording(lines, { name: "r" })).toThrow(message);
  });
});
