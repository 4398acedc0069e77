import { describe, expect, it } from "vitest";
import { createSessionKeyReader, DEFAULT_SESSION_KEY_SOURCES, parseSessionKeySource } from "./session-key.ts";

const read = createSessionKeyReader(DEFAULT_SESSION_KEY_SOURCES).read;

describe("createSessionKeyReader", () => {
  it("takes the first source that gives a key", () => {
    const headers = { "x-session-id": "a", "x-correlation-id": "b" };
    expect(read(headers, { prompt_cache_key: "c" })).toEqual({ key: "a" });
    expect(read({ "x-correlation-id": "b" }, { prompt_cache_key: "c" })).toEqual({ key: "c" });
    expect(read({ "x-correlation-id": "b" }, undefined)).toEqual({ key: "b" });
  });

  it.each([
    ["a string", { conversation: "conv_1" }],
    ["an object", { conversation: { id: "conv_1" } }],
  ])("takes a conversation given as %s", (_, body) => {
    expect(read({}, body)).toEqual({ key: "conv_1" });
  });

  it("takes a number as the id it is", () => {
    expect(read({}, { prompt_cache_key: 42 })).toEqual({ key: "42" });
  });

  it.each([
    ["nothing was sent", {}, {}, "absent"],
    ["the body is unknown", {}, undefined, "absent"],
    ["the value is no id", {}, { prompt_cache_key: { a: 1 } }, "absent"],
    ["the key is empty", { "x-session-id": "" }, {}, "unusable"],
    ["the key is blank", { "x-session-id": "   " }, {}, "unusable"],
    ["the key is too long", { "x-session-id": "k".repeat(513) }, {}, "unusable"],
  ])("gives no key when %s", (_, headers, body, reason) => {
    expect(read(headers, body)).toEqual({ key: undefined, reason });
  });

  it("takes a key of the greatest length", () => {
    expect(read({ "x-session-id": "k".repeat(512) }, {})).toEqual({ key: "k".repeat(512) });
  });

  it("goes on to the next source past an unusable key", () => {
    expect(read({ "x-session-id": " " }, { prompt_cache_key: "c" })).toEqual({ key: "c" });
  });

  it.each(["user", "safety_identifier", "previous_response_id"])("does not take %s unless told to", (field) => {
    expect(read({}, { [field]: "x" })).toEqual({ key: undefined, reason: "absent" });
    expect(createSessionKeyReader([`body:${field}`]).read({}, { [field]: "x" })).toEqual({ key: "x" });
  });

  it("reads nested fields and header names in any case", () => {
    const reader = createSessionKeyReader(["header:X-Team", "body:metadata.session.id"]);
    expect(reader.read({ "x-team": "t" }, {})).toEqual({ key: "t" });
    expect(reader.read({}, { metadata: { session: { id: "s" } } })).toEqual({ key: "s" });
  });

  it("sees only the body's own fields", () => {
    expect(createSessionKeyReader(["body:constructor.name"]).read({}, {})).toEqual({
      key: undefined,
      reason: "absent",
    });
  });

  it("refuses a source that cannot be read", () => {
    expect(() => createSessionKeyReader(["cookie:id"])).toThrow(/cookie:id/);
  });
});

describe("parseSessionKeySource", () => {
  it.each([
    ["header:X-Session-Id", { from: "header", name: "x-session-id" }],
    ["body:metadata.session_id", { from: "body", path: ["metadata", "session_id"] }],
  ])("reads %s", (text, source) => {
    expect(parseSessionKeySource(text)).toEqual(source);
  });

  it.each([
    ["x-session-id", 'expected "header:NAME" or "body:FIELD.FIELD", got "x-session-id"'],
    ["query:id", 'expected "header:NAME" or "body:FIELD.FIELD", got "query:id"'],
    ["header:", '"" is not a header name'],
    ["header:a b", '"a b" is not a header name'],
    ["body:a..b", '"a..b" is not a path of field names joined by dots'],
    ["body:", '"" is not a path of field names joined by dots'],
  ])("says what is wrong with %j", (text, problem) => {
    expect(parseSessionKeySource(text)).toBe(problem);
  });
});
