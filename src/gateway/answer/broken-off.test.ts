import { describe, expect, it } from "vitest";
import type { ReadDialect } from "../routes.ts";
import { brokenOffIn } from "./broken-off.ts";

const answer = (...reasons: (string | null)[]): string =>
  JSON.stringify({ choices: reasons.map((finish_reason) => ({ message: { content: "a" }, finish_reason })) });

describe("brokenOffIn", () => {
  it.each<[string, ReadDialect, string, string | undefined]>([
    ["an aborted answer", "chat", answer("abort"), "abort"],
    ["a failed one", "completions", answer("error"), "error"],
    ["one choice of several", "chat", answer("stop", "abort"), "abort"],
    ["spaces", "chat", '{"choices":[{"finish_reason" : "abort"}]}', "abort"],
    ["a good end", "chat", answer("stop", "length", null), undefined],
    ["a longer word", "chat", answer("aborted"), undefined],
    ["generated text", "chat", JSON.stringify({ content: '"finish_reason":"abort"' }), undefined],
    ["the word as a value", "chat", '{"a":["finish_reason","abort"]}', undefined],
    ["another dialect", "responses", answer("abort"), undefined],
    ["an answer cut in the key", "chat", '{"finish_reason"', undefined],
  ])("reads %s", (_what, dialect, text, expected) => {
    expect(brokenOffIn(dialect, Buffer.from(text))).toBe(expected);
  });
});
