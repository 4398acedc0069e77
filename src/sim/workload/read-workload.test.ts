import { describe, expect, it } from "vitest";
import { recordedRequestLine, recordingHeaderLine } from "../../core/index.ts";
import { AZURE_HEADER } from "./azure.ts";
import { formatOf, readWorkload, type TraceFormat } from "./read-workload.ts";

const TRACES: Readonly<Record<TraceFormat, readonly string[]>> = {
  azure: [AZURE_HEADER, "2023-11-16 18:15:46.6805900,374,44"],
  mooncake: ['{"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[0,1]}'],
  weka: ['{"id":"a","block_size":64,"requests":[{"t":0,"in":70,"out":3,"hash_ids":[1]}]}'],
  servegen: [
    '{"client":0,"trace":["0,5,1,Gamma,1,1"],"dataset":{"0":{"input_tokens":"{5: 1}","output_tokens":"{6: 1}"}}}',
  ],
  recording: [recordingHeaderLine(32), recordedRequestLine({ at: 0, in: 5, out: 1 })],
};
const formats = Object.entries(TRACES) as [TraceFormat, readonly string[]][];

describe("readWorkload", () => {
  it.each(formats)("tells the %s format by its first line", (format, lines) => {
    expect(formatOf(lines[0] as string)).toBe(format);
    expect(readWorkload(lines.join("\n"), { name: format }).arrivals.length).toBeGreaterThan(0);
  });

  it.each(formats)("reads %s from lines that come once, after blank ones, as from a text", (format, lines) => {
    function* once(): Generator<string> {
      yield "";
      yield* lines;
    }
    const { arrivals } = readWorkload(`\n${lines.join("\n")}`, { name: format });
    expect(readWorkload(once(), { name: format }).arrivals).toEqual(arrivals);
  });

  it("knows an azure trace with a byte order mark", () => {
    expect(readWorkload(`\uFEFF${TRACES.azure.join("\n")}`, { name: "a" }).arrivals).toHaveLength(1);
  });

  it("passes options on", () => {
    const lines = [...TRACES.weka, ...TRACES.weka];
    const workload = readWorkload(lines, {
      name: "w",
      sessions: { from: 1, to: 1 },
      blockTokens: 128,
      seed: undefined,
    });
    expect(workload).toMatchObject({ name: "w", blockTokens: 128, arrivals: [{ request: { sessionKey: "a:2" } }] });
  });

  it("refuses an option that the format does not know, and lists those it does", () => {
    const wanted = { name: "x", startS: 5 };
    expect(() => readWorkload(TRACES.azure, wanted)).toThrow(
      "startS means nothing for a trace of the format azure, which has no options",
    );
    expect(() => readWorkload(TRACES.recording, wanted)).toThrow(
      "startS means nothing for a trace of the format recording, whose options are model",
    );
  });

  it("refuses a trace without requests", () => {
    expect(() => readWorkload(AZURE_HEADER, { name: "x" })).toThrow("no requests in what was asked for");
  });

  it.each(["", "a,b,c", "null", "[]", '{"timestamp":1}', "{broken"])("lists the formats for %j", (text) => {
    expect(() => readWorkload(text, { name: "x" })).toThrow(/^line 1: expected the first line of azure .*recording/);
  });
});
