import { describe, expect, it } from "vitest";
import {
  type RecordedRequest,
  recordedRequestLine,
  recordedRequestSchema,
  recordingHeaderLine,
  recordingHeaderSchema,
} from "./recording.ts";

const full: RecordedRequest = {
  at: 12.5,
  in: 900,
  out: 40,
  blocks: [1, 2 ** 52 - 1],
  session: "9f",
  tenant: "acme",
  model: "llama",
};

describe("a recording", () => {
  it.each([[undefined], [1_700_000_000_000]])("reads back the header it writes, begun at %s", (startedAt) => {
    expect(recordingHeaderSchema.parse(JSON.parse(recordingHeaderLine(64, startedAt)))).toEqual({
      evenkeel: "recording",
      version: 1,
      blockTokens: 64,
      startedAt,
    });
  });

  it.each([
    ["all there is to know", full],
    ["nothing but sizes", { at: 0, in: 1, out: 0 }],
  ])("reads back a request with %s", (_, request) => {
    expect(recordedRequestSchema.parse(JSON.parse(recordedRequestLine(request)))).toEqual(request);
  });

  it("writes one line, its time to the microsecond", () => {
    expect(recordedRequestLine({ at: 1 / 3, in: 5, out: 2, tenant: "a\nb", session: undefined })).toBe(
      '{"at":0.333,"in":5,"out":2,"tenant":"a\\nb"}',
    );
  });

  it.each([
    ["a time before the start", { ...full, at: -1 }],
    ["an empty prompt", { ...full, in: 0 }],
    ["part of a token", { ...full, out: 1.5 }],
    ["a hash that a number cannot hold", { ...full, blocks: [2 ** 53] }],
    ["a key of another name", { ...full, tennant: "acme" }],
  ])("refuses %s", (_, request) => {
    expect(recordedRequestSchema.safeParse(request).success).toBe(false);
  });

  it("refuses a header of another version", () => {
    expect(recordingHeaderSchema.safeParse({ evenkeel: "recording", version: 2, blockTokens: 64 }).success).toBe(false);
  });
});
