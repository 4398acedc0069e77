import { describe, expect, it } from "vitest";
import { chatPrompt, promptShapes, promptsOf } from "./prompt.ts";
import type { PromptPart } from "./tokens.ts";

function shown(parts: readonly PromptPart[]): string[] {
  return parts.map((part) => ("text" in part ? part.text : "(media)"));
}

describe("chatPrompt", () => {
  it("puts every message behind its role and leaves the reply open", () => {
    const parts = chatPrompt([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ]);
    expect(shown(parts)).toEqual(["<|system|>", "Be brief.", "<|user|>", "Hi", "<|assistant|>"]);
  });

  it.each<[string, unknown, string[]]>([
    ["OpenAI text", [{ type: "text", text: "a" }], ["a"]],
    ["an OpenAI image", [{ type: "image_url", image_url: { url: "data:..." } }], ["(media)"]],
    ["OpenAI audio", [{ type: "input_audio", input_audio: { data: "..." } }], ["(media)"]],
    ["Responses text", [{ type: "input_text", text: "a" }], ["a"]],
    ["an Anthropic image", [{ type: "image", source: { data: "..." } }], ["(media)"]],
    ["an Anthropic tool result", [{ type: "tool_result", content: [{ type: "text", text: "42" }] }], ["42"]],
    ["an Anthropic tool result as text", [{ type: "tool_result", content: "42" }], ["42"]],
    ["an Anthropic tool call", [{ type: "tool_use", name: "f" }], ['{"type":"tool_use","name":"f"}']],
    ["parts that are plain text", ["a", 1], ['"a"', "1"]],
    ["an object", { a: 1 }, ['{"a":1}']],
    ["no content", null, []],
  ])("reads %s", (_what, content, expected) => {
    expect(shown(chatPrompt([{ role: "user", content }]))).toEqual(["<|user|>", ...expected, "<|assistant|>"]);
  });

  it("counts tools and tool calls as text", () => {
    const parts = chatPrompt([{ role: "assistant", content: null, ...{ tool_calls: [1] } }], [{ name: "f" }]);
    expect(shown(parts)).toEqual([
      "<|tools|>",
      '[{"name":"f"}]',
      "<|assistant|>",
      '{"tool_calls":[1]}',
      "<|assistant|>",
    ]);
  });
});

describe("promptsOf", () => {
  it.each<[string, string | string[] | number[] | number[][], unknown[]]>([
    ["text", "a", [[{ text: "a" }]]],
    ["texts", ["a", "b"], [[{ text: "a" }], [{ text: "b" }]]],
    ["token ids", [1, 2], [Uint32Array.of(1, 2)]],
    ["lists of token ids", [[1], [2, 3]], [Uint32Array.of(1), Uint32Array.of(2, 3)]],
  ])("reads %s", (_what, shape, expected) => {
    expect(promptsOf(promptShapes.parse(shape))).toEqual(expected);
  });

  it.each([[[]], [[[]]], [["a", 1]], [[1.5]], [{}]])("refuses %j", (shape) => {
    expect(promptShapes.safeParse(shape).success).toBe(false);
  });
});
