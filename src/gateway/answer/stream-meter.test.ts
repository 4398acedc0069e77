import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ReadDialect } from "../routes.ts";
import { createStreamMeter, type StreamMeter } from "./stream-meter.ts";

interface Read {
  readonly forwarded: string;
  readonly tokenEvents: number;
  readonly dataEvents: number;
  readonly meter: StreamMeter;
}

/** Feeds a stream in chunks that end at the given bytes, and at its end. */
function feed(dialect: ReadDialect, text: string, { drop = false, cuts = [] as readonly number[] } = {}): Read {
  const meter = createStreamMeter(dialect, { dropUsageEvent: drop });
  const bytes = Buffer.from(text);
  const forwarded: Buffer[] = [];
  let tokenEvents = 0;
  let dataEvents = 0;
  let from = 0;
  const reports = [...cuts, bytes.length].map((cut) => {
    const report = meter.push(bytes.subarray(from, cut));
    from = cut;
    return report;
  });
  for (const report of [...reports, meter.end()]) {
    forwarded.push(report.forward);
    tokenEvents += report.tokenEvents;
    dataEvents += report.dataEvents;
  }
  return { forwarded: Buffer.concat(forwarded).toString(), tokenEvents, dataEvents, meter };
}

const data = (value: unknown): string => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const event = (name: string, value: object = {}): string => `event: ${name}\n${data({ type: name, ...value })}`;
const delta = (value: object, rest: object = {}): string =>
  data({ id: "c", choices: [{ index: 0, delta: value, finish_reason: null, ...rest }] });
const text = (value: string, rest: object = {}): string =>
  data({ id: "c", choices: [{ index: 0, text: value, logprobs: null, finish_reason: null, ...rest }] });
const usage = {
  prompt_tokens: 10,
  completion_tokens: 2,
  total_tokens: 12,
  prompt_tokens_details: { cached_tokens: 8 },
};
const usageEvent = data({ id: "c", choices: [], usage });
const read = { promptTokens: 10, completionTokens: 2, cachedTokens: 8 };

describe("chat and completions", () => {
  it.each([
    ["text", delta({ content: "hi" }), 1],
    [
      "text with spaces around the colon",
      `data: {"choices": [{"delta": {"content" : "hi"}, "finish_reason": null}]}\n\n`,
      1,
    ],
    ["text that quotes keys", delta({ content: '"usage":{"prompt_tokens":1},"error":{}' }), 1],
    ["text with a role", delta({ role: "assistant", content: "hi" }), 1],
    ["a role alone", delta({ role: "assistant", content: "" }), 0],
    ["a role without content", delta({ role: "assistant", content: null }), 0],
    ["half a character after the role", delta({ content: "" }), 1],
    ["half a character with a null role", delta({ role: null, content: "" }), 1],
    ["an empty delta", delta({}), 0],
    ["reasoning, new name", delta({ reasoning: "hm", content: "" }), 1],
    ["reasoning, old name", delta({ reasoning_content: "hm" }), 1],
    ["a tool call's beginning", delta({ tool_calls: [{ index: 0, function: { name: "f", arguments: "" } }] }), 1],
    ["a tool call's arguments", delta({ tool_calls: [{ index: 0, function: { arguments: '{"a' } }] }), 1],
    ["a refusal", delta({ refusal: "no" }), 1],
    ["the end", delta({}, { finish_reason: "stop" }), 0],
    ["the end with empty text", delta({ content: "" }, { finish_reason: "stop" }), 0],
    ["the end with the last text", delta({ content: "!" }, { finish_reason: "stop" }), 1],
    ["text with usage", data({ choices: [{ delta: { content: "hi" } }], usage }), 1],
    [
      "text with null usage and empty error",
      data({ choices: [{ delta: { content: "a" } }], usage: null, error: "" }),
      1,
    ],
    ["usage alone", usageEvent, 0],
    ["completion text", text("hi"), 1],
    ["half a character of completion", text(""), 1],
    ["the end of a completion", text("", { finish_reason: "length" }), 0],
    ["the end mark", data("[DONE]"), 0],
    ["an error", data({ error: { message: "no" } }), 0],
    ["what is no JSON", data("{oops"), 0],
    ["what is no object", data("7"), 0],
  ])("counts %s", (_, stream, tokenEvents) => {
    expect(feed("chat", stream)).toMatchObject({ tokenEvents, dataEvents: 1, forwarded: stream });
  });

  it("counts neither comments nor pings as progress", () => {
    expect(feed("chat", ":\n\n: ping\n\n")).toMatchObject({ tokenEvents: 0, dataEvents: 0 });
  });

  it.each([
    ["in an event of its own", usageEvent],
    ["with the last text", data({ choices: [{ delta: { content: "x" } }], usage })],
    ["with the end", data({ choices: [{ delta: {}, finish_reason: "stop" }], usage })],
    [
      "on every event, zeroed before the last",
      data({ choices: [{ delta: { content: "x" } }], usage: zeroed() }) + usageEvent,
    ],
    ["before events that have none", usageEvent + delta({ content: "x" }) + data({ choices: [], usage: null })],
    ["before zeros", usageEvent + data({ choices: [], usage: zeroed() })],
    ["under an event name", `event: chunk\n${usageEvent}`],
    [
      "over several data lines",
      'data: {"choices":[],\ndata: "usage":{"prompt_tokens":10,\ndata: "completion_tokens":2,\ndata: "prompt_tokens_details":{"cached_tokens":8}}}\n\n',
    ],
    ["in a last event without a blank line", usageEvent.trimEnd()],
  ])("finds usage %s", (_, stream) => {
    expect(feed("chat", stream).meter.usage).toEqual(read);
  });

  it.each([
    ["an object", data({ error: { message: "no", type: "t", code: 503 } }), { message: "no", code: 503 }],
    ["a string", data({ error: "no", error_type: "overloaded" }), { message: "no", code: undefined }],
    [
      "a type for want of a code",
      data({ error: { message: "no", type: "t", code: null } }),
      { message: "no", code: "t" },
    ],
    ["a whole event", data({ object: "error", message: "no", code: 400 }), { message: "no", code: 400 }],
    ["an event name", `event: error\n${data({ message: "no" })}`, { message: "no", code: undefined }],
    [
      "an event name over an error",
      `event: error\n${data({ error: { message: "no" } })}`,
      { message: "no", code: undefined },
    ],
    ["an event name over no JSON", "event: error\ndata: no\n\n", { message: undefined, code: undefined }],
  ])("notes an error given as %s", (_, stream, error) => {
    expect(feed("chat", delta({ content: "x" }) + stream + data("[DONE]")).meter.error).toEqual(error);
  });

  it.each(["abort", "error"])("takes the finish reason %s for an error: nobody asked for that end", (reason) => {
    const ending = data({ choices: [{ delta: { content: "y" }, finish_reason: reason }] });
    const { meter } = feed("chat", delta({ content: "x" }) + ending + data("[DONE]"));
    expect(meter.error).toEqual({ message: undefined, code: reason });
  });

  it.each([{ error: "" }, { error: null }, { error: false }, {}])("takes %j for no error", (rest) => {
    expect(feed("chat", data({ choices: [{ delta: { content: "x" } }], ...rest })).meter.error).toBeUndefined();
  });

  it("keeps the first error", () => {
    expect(feed("chat", data({ error: "one" }) + data({ error: "two" })).meter.error?.message).toBe("one");
  });

  it.each(["\n", "\r\n", "\r"])("knows how a stream with line ends %j ended", (lineEnd) => {
    const ended = delta({ content: "x" }) + delta({}, { finish_reason: "stop" }) + data("[DONE]");
    const { meter } = feed("chat", ended.replaceAll("\n", lineEnd));
    expect(meter).toMatchObject({ isDone: true, hasFinishReason: true });
  });

  it("knows when a stream just stops", () => {
    const { meter } = feed("chat", delta({ content: "[DONE]" }));
    expect(meter).toMatchObject({ isDone: false, hasFinishReason: false });
  });

  it("goes on past an event too large to keep", () => {
    const large = delta({ content: "x".repeat(1_100_000) });
    const cuts = Array.from({ length: 17 }, (_, i) => i * 64_000);
    const { meter, dataEvents } = feed("chat", large + usageEvent, { cuts });
    expect(dataEvents).toBe(2);
    expect(meter.usage).toEqual(read);
  });
});

describe("messages", () => {
  const start = event("message_start", {
    message: {
      usage: { input_tokens: 3, cache_read_input_tokens: 6, cache_creation_input_tokens: 1, output_tokens: 1 },
    },
  });
  const block = event("content_block_delta", { delta: { type: "text_delta", text: "hi" } });
  const stop = event("message_delta", {
    delta: { stop_reason: "end_turn" },
    usage: { output_tokens: 7, input_tokens: null, cache_read_input_tokens: null },
  });
  const stream = [
    start,
    event("content_block_start"),
    event("ping"),
    block,
    block,
    event("content_block_stop"),
    stop,
    event("message_stop"),
  ].join("");

  it("counts deltas, merges usage and sees the end", () => {
    const { meter, tokenEvents, dataEvents } = feed("messages", stream);
    expect({ tokenEvents, dataEvents }).toEqual({ tokenEvents: 2, dataEvents: 8 });
    expect(meter).toMatchObject({
      usage: { promptTokens: 10, completionTokens: 7, cachedTokens: 6 },
      isDone: true,
      hasFinishReason: true,
      error: undefined,
    });
  });

  it("reads the same where events have no names", () => {
    const { meter, tokenEvents } = feed("messages", stream.replaceAll(/^event: .*\n/gm, "") + data("[DONE]"));
    expect(tokenEvents).toBe(2);
    expect(meter).toMatchObject({ usage: { promptTokens: 10, completionTokens: 7 }, isDone: true });
  });

  it("has the prompt's size from the start", () => {
    expect(feed("messages", start).meter.usage).toEqual({ promptTokens: 10, completionTokens: 1, cachedTokens: 6 });
  });

  it("notes an error", () => {
    const { meter } = feed("messages", start + event("error", { error: { type: "overloaded_error", message: "no" } }));
    expect(meter.error).toEqual({ message: "no", code: "overloaded_error" });
    expect(meter.isDone).toBe(false);
  });
});

describe("responses", () => {
  const last = (type: string, response: object = {}): string => event(type, { response });
  const counts = { input_tokens: 10, output_tokens: 2, input_tokens_details: { cached_tokens: 8 } };
  const deltas =
    event("response.output_text.delta", { delta: "a" }) + event("response.reasoning_text.delta", { delta: "b" });

  it("counts deltas of every kind", () => {
    const stream = event("response.created") + deltas + event("response.output_text.done", { text: "ab" });
    expect(feed("responses", stream)).toMatchObject({ tokenEvents: 2, dataEvents: 4 });
  });

  it.each(["response.completed", "response.incomplete", "response.failed"])("ends with %s", (type) => {
    const { meter } = feed("responses", deltas + last(type, { usage: counts }));
    expect(meter).toMatchObject({ usage: read, isDone: true, hasFinishReason: true });
  });

  it("notes a failure", () => {
    const { meter } = feed("responses", last("response.failed", { error: { code: "server_error", message: "no" } }));
    expect(meter.error).toEqual({ message: "no", code: "server_error" });
  });

  it.each([
    ["flat", { code: "server_error", message: "no" }],
    ["nested", { error: { code: "server_error", message: "no" } }],
  ])("notes an error event that is %s", (_, value) => {
    const { meter } = feed("responses", event("error", value));
    expect(meter.error).toEqual({ message: "no", code: "server_error" });
  });

  it("reads the same where events have no names", () => {
    const stream = (deltas + last("response.completed", { usage: counts })).replaceAll(/^event: .*\n/gm, "");
    const { meter, tokenEvents } = feed("responses", stream + data("[DONE]") + data("oops"));
    expect(tokenEvents).toBe(2);
    expect(meter).toMatchObject({ usage: read, isDone: true });
  });
});

describe("dropping the usage event", () => {
  const before = delta({ role: "assistant", content: "" }) + delta({ content: "größe" });
  const after = data("[DONE]");

  it.each([
    ["LF", (value: string) => value],
    ["CRLF", (value: string) => value.replaceAll("\n", "\r\n")],
    ["CR", (value: string) => value.replaceAll("\n", "\r")],
  ])("removes exactly it, wherever the stream is cut (%s)", (_, ends) => {
    const stream = ends(before + usageEvent + after);
    const length = Buffer.byteLength(stream);
    const expected = { forwarded: ends(before + after), tokenEvents: 1, dataEvents: 4 };
    for (let cut = 0; cut <= length; cut++) {
      const result = feed("chat", stream, { drop: true, cuts: [cut] });
      expect(result).toMatchObject(expected);
      expect(result.meter.usage).toEqual(read);
    }
    expect(feed("chat", stream, { drop: true, cuts: Array.from({ length }, (_unused, i) => i) })).toMatchObject(
      expected,
    );
  });

  it.each([
    ["usage with text", data({ choices: [{ delta: { content: "x" } }], usage })],
    ["usage with the end", data({ choices: [{ delta: {}, finish_reason: "stop" }], usage })],
    ["no choices and no usage", data({ choices: [], prompt_filter_results: [] })],
    ["no choices and null usage", data({ choices: [], usage: null })],
    ["comments", ": ping\n\n"],
    ["the rest of a broken event", "data: {"],
    ["odd fields", "id: 7\nretry: 3\n\n"],
  ])("keeps %s", (_, kept) => {
    expect(feed("chat", before + kept, { drop: true }).forwarded).toBe(before + kept);
  });

  it("keeps comments around it", () => {
    const stream = `: one\n\n: two\n${usageEvent}: three\n\n`;
    expect(feed("chat", stream, { drop: true }).forwarded).toBe(": one\n\n: two\n: three\n\n");
  });

  it("removes one that ends the stream without a blank line", () => {
    expect(feed("chat", before + usageEvent.trimEnd(), { drop: true }).forwarded).toBe(before);
  });

  it("passes a chunk of whole events on as it is", () => {
    const meter = createStreamMeter("chat", { dropUsageEvent: true });
    const chunk = Buffer.from(before);
    expect(meter.push(chunk).forward).toBe(chunk);
  });

  it("passes comments on at once", () => {
    const meter = createStreamMeter("chat", { dropUsageEvent: true });
    expect(meter.push(Buffer.from(":\n")).forward.toString()).toBe(":\n");
  });

  it("holds back no more than 64 KiB", () => {
    const meter = createStreamMeter("chat", { dropUsageEvent: true });
    const begun = Buffer.from(`data: {"choices":[],"usage":{"x":"${"x".repeat(60_000)}`);
    expect(meter.push(begun).forward).toHaveLength(0);
    expect(meter.isBetweenEvents).toBe(true);
    const more = Buffer.alloc(10_000, "x");
    expect(meter.push(more).forward.toString()).toBe(`${begun}${more}`);
    expect(meter.isBetweenEvents).toBe(false);
    const rest = '","prompt_tokens":3}}\n\n';
    expect(meter.push(Buffer.from(rest + after)).forward.toString()).toBe(rest + after);
    expect(meter.usage?.promptTokens).toBe(3);
    expect(meter.isBetweenEvents).toBe(true);
  });

  it("says the same for any stream and any cuts", () => {
    const piece = fc.constantFrom(before, usageEvent, after, ": c\n", ":\r\r", usageEvent.replaceAll("\n", "\r"));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.array(fc.nat(2000)), (pieces, cuts) => {
        const stream = pieces.join("");
        const inside = cuts.filter((cut) => cut <= Buffer.byteLength(stream)).sort((a, b) => a - b);
        const cut = feed("chat", stream, { drop: true, cuts: inside });
        const whole = feed("chat", stream, { drop: true });
        const kept = pieces.filter((value) => !value.includes('"prompt_tokens"')).join("");
        expect(cut).toMatchObject({ forwarded: kept, tokenEvents: whole.tokenEvents, dataEvents: whole.dataEvents });
      }),
      { numRuns: 500 },
    );
  });
});

describe("isBetweenEvents", () => {
  it.each([
    ["", true],
    [delta({ content: "x" }), true],
    [`${delta({ content: "x" })}data: {`, false],
    ["data: x\n", false],
    [": ping\n", true],
    [": pi", false],
  ])("after %j is %s", (stream, expected) => {
    const meter = createStreamMeter("chat", { dropUsageEvent: false });
    meter.push(Buffer.from(stream));
    expect(meter.isBetweenEvents).toBe(expected);
  });
});

function zeroed(): object {
  return { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
}
