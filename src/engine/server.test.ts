import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EngineOptions } from "./options.ts";
import { createEngineServer, type EngineServer } from "./server.ts";

/** Fast enough that no test waits; nothing below asserts a time. */
const FAST: EngineOptions = { listen: "127.0.0.1:0", model: "m", speed: 50 };

const MESSAGES = [{ role: "user", content: "What keeps a ship on an even keel?" }];

let server: EngineServer;
let url: string;

async function start(options: EngineOptions = {}): Promise<void> {
  server = createEngineServer({ ...FAST, ...options });
  ({ url } = await server.listen());
}

async function post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return await fetch(url + path, { ...init, method: "POST", body: JSON.stringify(body) });
}

async function answer(path: string, body: unknown): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await post(path, body);
  return { status: response.status, body: await response.json() };
}

interface StreamEvent {
  readonly name: string | undefined;
  /** Parsed JSON, or the text where it is not JSON. */
  readonly data: unknown;
}

async function events(path: string, body: object): Promise<StreamEvent[]> {
  const response = await post(path, { ...body, stream: true });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const text = await response.text();
  expect(text.endsWith("\n\n")).toBe(true);
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((block) => {
      const [, name, data = ""] = /^(?:event: (.+)\n)?data: (.+)$/.exec(block) ?? [];
      return { name, data: data.startsWith("{") ? JSON.parse(data) : data };
    });
}

async function metric(name: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text.split("\n").find((line) => line.startsWith(`${name}{`));
}

beforeEach(() => start());

afterEach(() => server.close());

describe("chat completions", () => {
  it("answers in one piece with usage", async () => {
    const body = { model: "m", messages: MESSAGES, max_tokens: 3 };
    expect(await answer("/v1/chat/completions", body)).toEqual({
      status: 200,
      body: {
        id: expect.stringMatching(/^chatcmpl-/),
        object: "chat.completion",
        created: expect.any(Number),
        model: "m",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: expect.stringMatching(/^\w{3} \w{3} \w{3}$/), refusal: null },
            logprobs: null,
            finish_reason: "length",
          },
        ],
        // <|user|> is 2 tokens, the question 9 and <|assistant|> 4.
        usage: {
          prompt_tokens: 15,
          completion_tokens: 3,
          total_tokens: 18,
          prompt_tokens_details: { cached_tokens: 0 },
        },
      },
    });
  });

  it("streams the role, one event per token, the reason and the end", async () => {
    const stream = await events("/v1/chat/completions", { messages: MESSAGES, max_tokens: 2 });
    const chunk = (delta: unknown, finish_reason: string | null): unknown => ({
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion.chunk",
      created: expect.any(Number),
      model: "m",
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    });
    expect(stream.map(({ data }) => data)).toEqual([
      chunk({ role: "assistant", content: "" }, null),
      chunk({ content: expect.stringMatching(/^\w{3}$/) }, null),
      chunk({ content: expect.stringMatching(/^ \w{3}$/) }, null),
      chunk({}, "length"),
      "[DONE]",
    ]);
  });

  it("generates the same text streamed and whole, and with the same seed on another engine", async () => {
    const body = { messages: MESSAGES, max_tokens: 500 };
    const whole = await answer("/v1/chat/completions", body);
    const streamed = await events("/v1/chat/completions", body);
    await server.close();
    await start({ speed: 100, profile: "llama8b-h200" });
    const elsewhere = await answer("/v1/chat/completions", body);
    const textOf = (result: typeof whole): unknown => (result.body as ChatBody).choices[0]?.message.content;
    const pieces = streamed.map(({ data }) => (data as ChunkBody).choices?.[0]?.delta.content ?? "");
    expect(pieces.join("")).toBe(textOf(whole));
    expect(textOf(elsewhere)).toBe(textOf(whole));
  });

  it("sends usage in a last chunk without choices when asked", async () => {
    const options = { stream_options: { include_usage: true } };
    const stream = await events("/v1/chat/completions", { messages: MESSAGES, max_tokens: 2, ...options });
    expect(stream.at(-2)?.data).toMatchObject({ choices: [], usage: { prompt_tokens: 15, completion_tokens: 2 } });
    expect(stream.filter(({ data }) => (data as ChunkBody).usage !== undefined)).toHaveLength(1);
  });

  it("sends usage with every chunk when asked", async () => {
    const options = { stream_options: { include_usage: true, continuous_usage_stats: true } };
    const stream = await events("/v1/chat/completions", { messages: MESSAGES, max_tokens: 2, ...options });
    const counts = stream.map(({ data }) => (data as ChunkBody).usage?.completion_tokens);
    expect(counts).toEqual([0, 1, 2, 2, 2, undefined]);
  });

  it("generates several choices of one prompt, counted once", async () => {
    const body = { messages: MESSAGES, max_tokens: 2, n: 3 };
    const { body: whole } = await answer("/v1/chat/completions", body);
    expect(whole).toMatchObject({
      choices: [{ index: 0 }, { index: 1 }, { index: 2 }],
      usage: { prompt_tokens: 15, completion_tokens: 6 },
    });
    expect(new Set((whole as ChatBody).choices.map(({ message }) => message.content)).size).toBe(3);
    const stream = await events("/v1/chat/completions", body);
    expect(stream.filter(({ data }) => (data as ChunkBody).choices?.[0]?.delta.role !== undefined)).toHaveLength(3);
    expect(stream.filter(({ data }) => data === "[DONE]")).toHaveLength(1);
  });

  it("finds the first turn of a conversation in its cache at the second", async () => {
    const first = (await answer("/v1/chat/completions", { messages: MESSAGES, max_tokens: 40 })).body as ChatBody;
    const messages = [...MESSAGES, first.choices[0]?.message, { role: "user", content: "Go on." }];
    const second = (await answer("/v1/chat/completions", { messages, max_tokens: 4 })).body as ChatBody;
    // 15 prompt tokens and 39 computed ones of the reply fill three blocks.
    expect(second.usage.prompt_tokens_details.cached_tokens).toBe(48);
    const salted = await answer("/v1/chat/completions", { messages, max_tokens: 4, cache_salt: "s" });
    expect((salted.body as ChatBody).usage.prompt_tokens_details.cached_tokens).toBe(0);
    expect(await metric("vllm:prefix_cache_hits_total")).toMatch(/ 48$/);
  });

  it("counts an image as a constant, whatever its bytes", async () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(50_000)}` } };
    const body = { messages: [{ role: "user", content: [image] }], max_tokens: 1 };
    expect((await answer("/v1/chat/completions", body)).body).toMatchObject({ usage: { prompt_tokens: 582 } });
  });

  it("takes the request id into its own", async () => {
    const headers = { "x-request-id": "abc" };
    const response = await post("/v1/chat/completions", { messages: MESSAGES, max_tokens: 1 }, { headers });
    expect(await response.json()).toMatchObject({ id: "chatcmpl-abc" });
  });

  it("stops by itself where the bound is far", async () => {
    const { body } = await answer("/v1/chat/completions", { messages: MESSAGES, max_completion_tokens: 100_000 });
    expect(body).toMatchObject({ choices: [{ finish_reason: "stop" }] });
    expect(await metric("vllm:request_success_total")).toMatch(/finished_reason="stop"} 1$/);
  });

  it("generates the whole bound with ignore_eos", async () => {
    const body = { messages: MESSAGES, max_tokens: 777, ignore_eos: true };
    expect((await answer("/v1/chat/completions", body)).body).toMatchObject({ usage: { completion_tokens: 777 } });
  });
});

describe("completions", () => {
  it.each([
    ["text", "abcdefgh", 1, 2],
    ["texts", ["abcd", "efgh"], 2, 2],
    ["token ids", [1, 2, 3], 1, 3],
    ["lists of token ids", [[1], [2, 3]], 2, 3],
  ])("takes %s", async (_what, prompt, choices, promptTokens) => {
    const { body } = await answer("/v1/completions", { prompt, max_tokens: 2 });
    expect(body).toMatchObject({
      object: "text_completion",
      usage: { prompt_tokens: promptTokens, completion_tokens: 2 * choices },
    });
    expect((body as ChatBody).choices).toHaveLength(choices);
  });

  it("has a natural length where the body says one, and no bound then", async () => {
    const { body } = await answer("/v1/completions", { prompt: "a", natural_tokens: 90 });
    expect(body).toMatchObject({ choices: [{ finish_reason: "stop" }], usage: { completion_tokens: 90 } });
  });

  it("streams text and generates 16 tokens unless told otherwise", async () => {
    const stream = await events("/v1/completions", { prompt: "abcd", stream_options: { include_usage: true } });
    expect(stream).toHaveLength(16 + 3);
    expect(stream[0]?.data).toMatchObject({ object: "text_completion", choices: [{ index: 0, finish_reason: null }] });
    expect(stream.at(-3)?.data).toMatchObject({ choices: [{ text: "", finish_reason: "length" }] });
    expect(stream.at(-2)?.data).toMatchObject({ choices: [], usage: { completion_tokens: 16 } });
  });

  it("keeps the choices of several prompts apart in one stream", async () => {
    const stream = await events("/v1/completions", { prompt: ["a", "b"], n: 2, max_tokens: 2 });
    const indices = stream.flatMap(({ data }) => (data as ChunkBody).choices?.map(({ index }) => index) ?? []);
    expect(indices.toSorted()).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
  });
});

describe("responses", () => {
  const body = { input: "How deep is a keel?", instructions: "Be brief.", max_output_tokens: 2 };

  it("answers in one piece", async () => {
    expect((await answer("/v1/responses", body)).body).toMatchObject({
      object: "response",
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ type: "message", content: [{ type: "output_text", text: expect.stringMatching(/^\w{3} \w{3}$/) }] }],
      usage: { input_tokens: 17, output_tokens: 2, total_tokens: 19, input_tokens_details: { cached_tokens: 0 } },
    });
  });

  it("streams numbered events under their names", async () => {
    const stream = await events("/v1/responses", body);
    expect(stream.map(({ name }) => name)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.incomplete",
    ]);
    stream.forEach(({ name, data }, index) => {
      expect(data).toMatchObject({ type: name, sequence_number: index });
    });
    expect(stream.at(-1)?.data).toMatchObject({ response: { usage: { output_tokens: 2 } } });
  });

  it("completes where it stops by itself, and reads a list of items", async () => {
    const input = [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }];
    expect((await answer("/v1/responses", { input })).body).toMatchObject({ status: "completed" });
  });

  it("stores nothing", async () => {
    const chained = await answer("/v1/responses", { ...body, previous_response_id: "resp_1" });
    expect(chained).toMatchObject({ status: 404, body: { error: { code: 404 } } });
  });
});

describe("messages", () => {
  const body = { model: "m", system: "Be brief.", messages: MESSAGES, max_tokens: 2 };

  it("answers in one piece", async () => {
    expect((await answer("/v1/messages", body)).body).toMatchObject({
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: expect.stringMatching(/^\w{3} \w{3}$/) }],
      stop_reason: "max_tokens",
      usage: { input_tokens: 21, cache_read_input_tokens: 0, output_tokens: 2 },
    });
  });

  it("streams named events without [DONE], and counts cached tokens beside the input", async () => {
    await answer("/v1/messages", body);
    const stream = await events("/v1/messages", body);
    expect(stream.map(({ name }) => name)).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(stream[0]?.data).toMatchObject({
      type: "message_start",
      message: { usage: { input_tokens: 5, cache_read_input_tokens: 16, output_tokens: 0 } },
    });
    expect(stream.at(-2)?.data).toMatchObject({ delta: { stop_reason: "max_tokens" }, usage: { output_tokens: 2 } });
  });

  it("counts tokens", async () => {
    expect((await answer("/v1/messages/count_tokens", body)).body).toEqual({ input_tokens: 21 });
  });

  it("reports errors in Anthropic's shape", async () => {
    expect(await answer("/v1/messages", { model: "m", messages: MESSAGES })).toMatchObject({
      status: 400,
      body: { type: "error", error: { type: "invalid_request_error", message: expect.stringContaining("max_tokens") } },
    });
  });
});

interface ChatBody {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
  readonly usage: { readonly prompt_tokens_details: { readonly cached_tokens: number } };
}

interface ChunkBody {
  readonly choices?: readonly {
    readonly index: number;
    readonly delta: { readonly role?: string; readonly content?: string };
  }[];
  readonly usage?: { readonly completion_tokens: number };
}
