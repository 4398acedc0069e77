import { describe, expect, it } from "vitest";
import type { ReadDialect } from "../routes.ts";
import { readAnswerUsage } from "./answer-usage.ts";

const read = (dialect: ReadDialect, answer: unknown) =>
  readAnswerUsage(dialect, Buffer.from(typeof answer === "string" ? answer : JSON.stringify(answer)));

describe("readAnswerUsage", () => {
  it.each<[ReadDialect, unknown, object]>([
    [
      "chat",
      {
        choices: [{ message: { content: 'say "usage":{"prompt_tokens":1}' } }],
        usage: { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 8 } },
        timings: {},
      },
      { promptTokens: 10, completionTokens: 5, cachedTokens: 8 },
    ],
    [
      "completions",
      { usage: { prompt_tokens: 10, completion_tokens: 0, prompt_tokens_details: null }, choices: [{ text: "" }] },
      { promptTokens: 10, completionTokens: 0, cachedTokens: undefined },
    ],
    [
      "responses",
      { usage: { input_tokens: 10, output_tokens: 5, input_tokens_details: { cached_tokens: 0 } } },
      { promptTokens: 10, completionTokens: 5, cachedTokens: 0 },
    ],
    [
      "messages",
      { usage: { input_tokens: 3, cache_read_input_tokens: 6, cache_creation_input_tokens: 1, output_tokens: 5 } },
      { promptTokens: 10, completionTokens: 5, cachedTokens: 6 },
    ],
    ["embeddings", { usage: { prompt_tokens: 10, total_tokens: 10 } }, { promptTokens: 10 }],
    ["rerank", { usage: { total_tokens: 10 } }, { promptTokens: 10 }],
  ])("reads that of %s", (dialect, answer, usage) => {
    const unknown = { promptTokens: undefined, completionTokens: undefined, cachedTokens: undefined };
    expect(read(dialect, answer)).toEqual({ ...unknown, ...usage });
  });

  it("finds it in the last bytes of a large answer", () => {
    const answer = JSON.stringify({
      data: [{ embedding: new Array(50_000).fill(0.123) }],
      usage: { prompt_tokens: 7 },
    });
    expect(read("embeddings", answer.slice(-1000))?.promptTokens).toBe(7);
  });

  it("is not led astray by the word in a list or as a value", () => {
    expect(read("chat", { usage: { prompt_tokens: 7 }, tags: ["usage", "x"], kind: "usage" })?.promptTokens).toBe(7);
  });

  it.each([
    "",
    "{}",
    '{"usage":null}',
    '{"usage":{}}',
    '{"usage":{"prompt_tokens":',
    '"usage"',
    '{"usage":{"prompt_tokens":"7"}}',
  ])("finds none in %j", (answer) => {
    expect(read("chat", answer)).toBeUndefined();
  });
});
