import { describe, expect, it } from "vitest";
import type { ReadDialect } from "../routes.ts";
import { countPromptTokens } from "./prompt-size.ts";
import { type BodyProblem, type RequestFacts, readRequest } from "./read-request.ts";

function read(dialect: ReadDialect, body: unknown): RequestFacts {
  const facts = readRequest(dialect, Buffer.from(JSON.stringify(body)));
  if (!facts.isReadable) throw new Error(facts.message);
  return facts;
}

function refuse(body: string): BodyProblem {
  const facts = readRequest("chat", Buffer.from(body));
  if (facts.isReadable) throw new Error("was read");
  return facts;
}

const says = (content: unknown): object => ({ model: "m", messages: [{ role: "user", content }] });

describe("readRequest", () => {
  describe("size of the prompt", () => {
    it.each<[string, ReadDialect, object, number]>([
      ["a string", "chat", says("hello"), 5],
      ["bytes, not characters", "chat", says("größe€"), 10],
      [
        "parts",
        "chat",
        says([
          { type: "text", text: "hello" },
          { type: "text", text: "you" },
        ]),
        8,
      ],
      ["a part without a type", "chat", says([{ text: "hello" }]), 5],
      ["no content", "chat", says(null), 0],
      ["content left out", "chat", { messages: [{ role: "assistant" }] }, 0],
      ["a refusal", "chat", { messages: [{ role: "assistant", refusal: "no" }] }, 2],
      ["reasoning", "chat", { messages: [{ role: "assistant", reasoning_content: "hm", content: "yes" }] }, 5],
      ["tools", "chat", { tools: [{ type: "function" }], messages: [] }, '[{"type":"function"}]'.length],
      ["tool calls", "chat", { messages: [{ role: "assistant", tool_calls: [{ id: "1" }] }] }, '[{"id":"1"}]'.length],
      ["a tool's result", "chat", { messages: [{ role: "tool", tool_call_id: "1", content: "sunny" }] }, 5],
      ["one text", "completions", { prompt: "hello" }, 5],
      ["several texts", "completions", { prompt: ["hello", "you"] }, 8],
      ["a suffix", "completions", { prompt: "hello", suffix: "end" }, 8],
      ["input text", "responses", { instructions: "be", input: "hello" }, 7],
      [
        "input items",
        "responses",
        {
          input: [
            { role: "user", content: [{ type: "input_text", text: "hello" }] },
            { type: "message", role: "assistant", content: [{ type: "output_text", text: "hi" }] },
            { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "x".repeat(999) },
            { type: "function_call", name: "f", arguments: "{}", call_id: "c" },
            { type: "function_call_output", call_id: "c", output: "ok" },
            { type: "custom_tool_call", name: "g", input: "in" },
            { type: "item_reference", id: "rs_1" },
          ],
        },
        5 + 2 + 2 + 3 + 2 + 3,
      ],
      ["a system text", "messages", { system: "be", messages: [{ role: "user", content: "hello" }] }, 7],
      [
        "blocks",
        "messages",
        {
          system: [{ type: "text", text: "be", cache_control: { type: "ephemeral" } }],
          messages: [
            {
              role: "assistant",
              content: [
                { type: "thinking", thinking: "hm", signature: "x".repeat(999) },
                { type: "redacted_thinking", data: "x".repeat(999) },
                { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
              ],
            },
            {
              role: "user",
              content: [
                { type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "ok" }] },
                { type: "document", title: "T", source: { type: "text", media_type: "text/plain", data: "hello" } },
                { type: "document", source: { type: "content", content: [{ type: "text", text: "you" }] } },
                { type: "search_result", title: "S", source: "url", content: [{ type: "text", text: "me" }] },
              ],
            },
          ],
        },
        2 + 2 + (1 + '{"a":1}'.length) + 2 + 6 + 3 + 3,
      ],
      ["texts to embed", "embeddings", { input: ["hello", "you"] }, 8],
      ["messages to embed", "embeddings", says("hello"), 5],
      ["a query read with every document", "rerank", { query: "q?", documents: ["hello", { text: "you" }] }, 2 * 2 + 8],
      ["one text against many", "score", { text_1: "q?", text_2: ["hello", "you"] }, 2 * 2 + 8],
      ["texts in pairs", "score", { text_1: ["a", "b"], text_2: ["hello", "you"] }, 2 + 8],
      ["newer names", "score", { queries: "q?", documents: ["hello"] }, 7],
      ["blocks to score", "score", { text_1: "q?", text_2: { content: [{ type: "text", text: "hello" }] } }, 7],
      ["a prompt to tokenize", "tokenize", { prompt: "hello" }, 5],
      ["llama.cpp's content", "tokenize", { content: "hello" }, 5],
      ["messages to tokenize", "tokenize", says("hello"), 5],
    ])("counts %s", (_, dialect, body, textBytes) => {
      expect(read(dialect, body).prompt).toEqual({ textBytes, tokenIds: 0, mediaItems: 0, isKnown: true });
    });

    it.each<[ReadDialect, object, number]>([
      ["completions", { prompt: [1, 2, 3] }, 3],
      ["completions", { prompt: [[1, 2], [3]] }, 3],
      ["completions", { prompt: [] }, 0],
      ["embeddings", { input: [[1, 2], [3]] }, 3],
    ])("counts the token ids of %s %j exactly", (dialect, body, tokenIds) => {
      expect(read(dialect, body).prompt).toEqual({ textBytes: 0, tokenIds, mediaItems: 0, isKnown: true });
    });

    const base64 = "iVBORw0KGgoAAAAN".repeat(131_072);
    const dataUrl = `data:image/png;base64,${base64}`;
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: base64 } };

    it.each<[string, ReadDialect, object]>([
      ["an image_url", "chat", says([{ type: "image_url", image_url: { url: dataUrl } }])],
      ["an image_url that is a string", "chat", says([{ type: "image_url", image_url: dataUrl }])],
      ["an image_url without a type", "chat", says([{ image_url: { url: dataUrl } }])],
      ["input_audio", "chat", says([{ type: "input_audio", input_audio: { data: base64, format: "wav" } }])],
      ["a file", "chat", says([{ type: "file", file: { file_data: dataUrl, filename: "a.pdf" } }])],
      ["a data URL in text", "chat", says(`look: ${dataUrl}`)],
      [
        "an image in a system part",
        "chat",
        { messages: [{ role: "system", content: [{ type: "image_url", image_url: dataUrl }] }] },
      ],
      [
        "input_image",
        "responses",
        { input: [{ role: "user", content: [{ type: "input_image", image_url: dataUrl }] }] },
      ],
      ["input_file", "responses", { input: [{ role: "user", content: [{ type: "input_file", file_data: dataUrl }] }] }],
      [
        "an image in a function's output",
        "responses",
        { input: [{ type: "function_call_output", output: [{ type: "input_image", image_url: dataUrl }] }] },
      ],
      [
        "a screenshot",
        "responses",
        { input: [{ type: "computer_call_output", output: { type: "computer_screenshot", image_url: dataUrl } }] },
      ],
      ["an image block", "messages", says([image])],
      ["an image in a tool's result", "messages", says([{ type: "tool_result", tool_use_id: "t", content: [image] }])],
      ["a document", "messages", says([{ type: "document", source: { type: "base64", data: base64 } }])],
      ["an image in a system block", "messages", { system: [image], messages: [] }],
    ])("counts %s of 2 MB as one item", (_, dialect, body) => {
      const { prompt } = read(dialect, body);
      expect(prompt).toMatchObject({ mediaItems: 1, isKnown: true });
      expect(prompt.textBytes).toBeLessThan(10);
      expect(countPromptTokens(prompt, 4)).toBeGreaterThanOrEqual(500);
      expect(countPromptTokens(prompt, 4)).toBeLessThanOrEqual(5000);
    });

    it("counts the media of a query once per document", () => {
      const query = { content: [{ type: "image_url", image_url: "http://a/b.png" }] };
      expect(read("rerank", { query, documents: ["a", "b", "c"] }).prompt.mediaItems).toBe(3);
    });

    it.each<[ReadDialect, object]>([
      ["chat", {}],
      ["chat", { messages: "hello" }],
      ["chat", { messages: [1] }],
      ["chat", says(42)],
      ["chat", says([{ type: "hologram", hologram: {} }])],
      ["chat", { messages: [{ role: { toString: 1 }, content: { type: { toString: 1 } } }] }],
      ["completions", {}],
      ["completions", { prompt: { text: "hello" } }],
      ["completions", { prompt: ["hello", 1] }],
      ["responses", {}],
      ["responses", { input: [1] }],
      ["messages", { messages: { role: "user" } }],
      ["embeddings", {}],
      ["rerank", { query: "q" }],
      ["score", {}],
      ["tokenize", {}],
    ])("falls back to the body's length for %s %j", (dialect, body) => {
      const { prompt } = read(dialect, body);
      expect(prompt).toMatchObject({ textBytes: JSON.stringify(body).length, isKnown: false });
    });

    it("bounds what an unknown shape counts for", () => {
      const { prompt } = read("chat", says([{ type: "hologram", hologram: "x".repeat(1_000_000) }]));
      expect(prompt).toMatchObject({ textBytes: 65_536, isKnown: false });
    });

    it("gives up on nesting beyond any use, but still reads the request", () => {
      const nest = (depth: number): string => `{"messages":[{"content":${"[".repeat(depth)}${"]".repeat(depth)}}]}`;
      const tools = `{"messages":[],"tools":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
      for (const body of [nest(100), nest(100_000), tools]) {
        const facts = readRequest("chat", Buffer.from(body));
        expect(facts.isReadable && facts.prompt.isKnown).toBe(false);
        expect(facts.isReadable).toBe(true);
      }
    });
  });

  it("takes the model as it is written", () => {
    expect(read("chat", { model: " Org/M ", messages: [] }).model).toBe(" Org/M ");
    expect(read("chat", { model: 7, messages: [] }).model).toBeUndefined();
    expect(read("chat", { messages: [] }).model).toBeUndefined();
  });

  it.each([
    [true, true],
    [false, false],
    ["true", false],
    [1, false],
    [undefined, false],
  ])("takes stream: %j as %s", (stream, isStreaming) => {
    expect(read("chat", { messages: [], stream }).isStreaming).toBe(isStreaming);
  });

  it.each<[ReadDialect, object, number | undefined]>([
    ["chat", {}, undefined],
    ["chat", { max_tokens: 16 }, 16],
    ["chat", { max_tokens: 16, max_completion_tokens: 8 }, 8],
    ["chat", { max_tokens: 16, n: 3 }, 48],
    ["chat", { max_tokens: null }, undefined],
    ["chat", { max_tokens: -1 }, undefined],
    ["chat", { max_tokens: "16" }, undefined],
    ["chat", { max_tokens: 1.5 }, undefined],
    ["chat", { max_tokens: 16, n: 0 }, 16],
    ["completions", { prompt: "x", max_tokens: 16, n: 2, best_of: 4 }, 64],
    ["completions", { prompt: ["x", "y", "z"], max_tokens: 16 }, 48],
    ["completions", { prompt: [[1], [2]], max_tokens: 16 }, 32],
    ["completions", { prompt: [1, 2, 3], max_tokens: 16 }, 16],
    ["completions", { prompt: "x", max_tokens: 0 }, 0],
    ["responses", { max_output_tokens: 16, max_tokens: 1 }, 16],
    ["messages", { max_tokens: 16, n: 3 }, 16],
    ["embeddings", { max_tokens: 16 }, undefined],
  ])("bounds the output of %s %j by %j", (dialect, body, bound) => {
    expect(read(dialect, body).maxOutputTokens).toBe(bound);
  });

  it.each([
    [undefined, "unspecified"],
    [null, "unspecified"],
    ["yes", "unspecified"],
    [{}, "unspecified"],
    [{ other: 1 }, "unspecified"],
    [{ include_usage: null }, "unspecified"],
    [{ include_usage: true }, "asked"],
    [{ include_usage: true, continuous_usage_stats: true }, "asked"],
    [{ include_usage: false }, "declined"],
    [{ continuous_usage_stats: true }, "declined"],
  ])("takes stream_options: %j as %s", (stream_options, wish) => {
    expect(read("chat", { messages: [], stream: true, stream_options }).usageWish).toBe(wish);
  });

  it("hands out the parsed body, unknown fields and all", () => {
    expect(read("chat", { messages: [], vendor: { a: [1] } }).body.vendor).toEqual({ a: [1] });
  });

  it("reads a body that begins with a byte-order mark", () => {
    expect(readRequest("chat", Buffer.from('\ufeff{"model":"m","messages":[]}'))).toMatchObject({ model: "m" });
  });

  it.each([
    ["[]", "The body must be a JSON object, not an array."],
    ["null", "The body must be a JSON object, not null."],
    ['"x"', "The body must be a JSON object, not a string."],
    ["7", "The body must be a JSON object, not a number."],
    ["", "The body is empty; it must be a JSON object."],
    ['{"a":x}', "The body is not valid JSON: unexpected character at line 1, column 6 (position 5)."],
    ['{"a":', "The body is not valid JSON: the body ends too early at line 1, column 6 (position 5)."],
  ])("says what is wrong with %j", (body, message) => {
    expect(refuse(body).message).toBe(message);
  });
});

describe("hashPrefix", () => {
  const long = "The quick brown fox jumps over the lazy dog. ".repeat(50);
  const hashes = (dialect: ReadDialect, body: unknown, servedModel?: string): readonly number[] =>
    read(dialect, body).hashPrefix(1000, servedModel)?.hashes ?? [];
  const chat = (...contents: unknown[]): object => ({
    model: "m",
    messages: contents.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content })),
  });

  it("gives the next turn of a conversation the same beginning", () => {
    const first = hashes("chat", chat(long));
    const second = hashes("chat", chat(long, "an answer", long));
    expect(first.length).toBeGreaterThan(5);
    expect(second.slice(0, first.length)).toEqual(first);
    expect(second.length).toBeGreaterThan(first.length);
  });

  it("does the same for Responses and Messages", () => {
    const responses = (input: unknown[]): object => ({ model: "m", instructions: long, input });
    const asked = { role: "user", content: long };
    const answered = { role: "assistant", content: [{ type: "output_text", text: "x" }] };
    const one = hashes("responses", responses([asked]));
    expect(hashes("responses", responses([asked, answered, asked])).slice(0, one.length)).toEqual(one);
    const messages = (list: unknown[]): object => ({ model: "m", system: long, messages: list });
    const two = hashes("messages", messages([asked]));
    expect(hashes("messages", messages([asked, asked])).slice(0, two.length)).toEqual(two);
  });

  it("hashes text parts as the string they make up for the engine", () => {
    expect(hashes("chat", chat([{ type: "text", text: long }]))).toEqual(hashes("chat", chat(long)));
  });

  it.each<[string, object, object]>([
    ["the model", { ...chat(long), model: "m" }, { ...chat(long), model: "n" }],
    ["the salt", { ...chat(long), cache_salt: "a" }, { ...chat(long), cache_salt: "b" }],
    ["the adapter", { ...chat(long), lora_path: "a" }, { ...chat(long), lora_path: "b" }],
    ["the tools", { ...chat(long), tools: [{ a: 1 }] }, { ...chat(long), tools: [{ a: 2 }] }],
    ["the role", { messages: [{ role: "user", content: long }] }, { messages: [{ role: "system", content: long }] }],
    [
      "an image",
      chat([
        { type: "image_url", image_url: "http://a/1.png" },
        { type: "text", text: long },
      ]),
      chat([
        { type: "image_url", image_url: "http://a/2.png" },
        { type: "text", text: long },
      ]),
    ],
  ])("tells prompts apart by %s from the first block on", (_, one, other) => {
    expect(hashes("chat", one)[0]).not.toBe(hashes("chat", other)[0]);
  });

  it("counts an alias as the model it stands for", () => {
    expect(hashes("chat", { ...chat(long), model: "alias" }, "m")).toEqual(hashes("chat", chat(long)));
  });

  it("hashes token ids, large ones too", () => {
    const ids = Array.from({ length: 1000 }, (_, i) => i * 151);
    const prompt = hashes("completions", { model: "m", prompt: ids });
    expect(prompt.length).toBeGreaterThan(5);
    expect(hashes("completions", { model: "m", prompt: [...ids, 1, 2, 3] }).slice(0, prompt.length)).toEqual(prompt);
    const other = ids.with(0, 65_536);
    expect(hashes("completions", { model: "m", prompt: other })[0]).not.toBe(prompt[0]);
  });

  it("spreads the prompt's tokens over its blocks", () => {
    const prefix = read("chat", chat(long)).hashPrefix(1000);
    const blocks = (long.length + "user".length) / 256;
    expect(prefix?.tokensPerBlock).toBeCloseTo(1000 / blocks);
  });

  it("lets an item of media take as many blocks as its tokens would", () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"iVBOR/w0".repeat(100_000)}` } };
    const prefix = read("chat", chat([image])).hashPrefix(1000);
    expect(prefix?.hashes).toHaveLength(15);
    expect(prefix?.tokensPerBlock).toBeCloseTo(64, 0);
  });

  it("stops where a shape is unknown", () => {
    const unknown = hashes("chat", chat(long, [{ type: "hologram" }], long));
    expect(unknown).toEqual(hashes("chat", chat(long)));
  });

  it("looks at a bounded part of the prompt and gives it its share of the tokens", () => {
    const prefix = read("chat", chat("x".repeat(4_194_300))).hashPrefix(1_000_000);
    expect(prefix?.hashes).toHaveLength(8192);
    expect((prefix?.tokensPerBlock ?? 0) * 8192).toBeCloseTo(500_000, -2);
  });

  it.each<[string, ReadDialect, object]>([
    ["a prompt shorter than a block", "chat", chat("hello")],
    ["an empty prompt", "completions", { prompt: [] }],
    ["embeddings", "embeddings", { input: long }],
    ["scores", "score", { text_1: long, text_2: long }],
  ])("gives none for %s", (_, dialect, body) => {
    expect(read(dialect, body).hashPrefix(1000)).toBeUndefined();
  });
});
