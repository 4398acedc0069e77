import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { exchange } from "../../support/http-client.ts";
import { type BalancedLlama, startBalancedLlama } from "../harness/balanced-llama.ts";
import { type ChatEvent, chatEventsOf, chatTextOf, eventsOf } from "../harness/events.ts";
import { LLAMA_MODEL, SLOT_CONTEXT } from "../harness/llama-server.ts";

let engines: BalancedLlama["engines"];
let serve: BalancedLlama["serve"];

beforeAll(async () => {
  const fleet = await startBalancedLlama();
  ({ engines, serve } = fleet);
  return fleet.stop;
});

/** Greedy, and never at an end of its own: the same text on every server, and as long as asked for. */
const FIXED = { temperature: 0, ignore_eos: true, cache_prompt: false };
const CHAT = { model: LLAMA_MODEL, messages: [{ role: "user", content: "Sing of keels" }], max_tokens: 12, ...FIXED };

/** Without what differs from request to request. */
function lasting(event: unknown): unknown {
  if (typeof event !== "object" || event === null) return event;
  const { id, created, timings, ...rest } = event as Record<string, unknown>;
  return rest;
}

describe("streams", () => {
  it("are, event by event, what the engine says without the balancer", async () => {
    const body = { ...CHAT, stream: true };
    const alone = await exchange(`${engines[0]?.url}/v1/chat/completions`, { body });
    const balanced = await exchange(`${serve.url}/v1/chat/completions`, { body });
    expect(balanced.isWhole).toBe(true);
    expect(eventsOf(balanced.text).map(lasting)).toEqual(eventsOf(alone.text).map(lasting));
    expect(eventsOf(balanced.text).at(-1)).toBe("[DONE]");
  });

  it("count prompt and output tokens exactly, though the client asked for no usage and sees none", async () => {
    const outputBefore = await serve.metric("output_tokens_total");
    const promptBefore = await serve.metric("prompt_tokens_total");
    const { text } = await exchange(`${serve.url}/v1/chat/completions`, { body: { ...CHAT, stream: true } });
    expect(chatEventsOf(text).some(({ usage }) => usage !== undefined)).toBe(false);
    const whole = await exchange(`${serve.url}/v1/chat/completions`, { body: CHAT });
    const { usage } = JSON.parse(whole.text) as Required<ChatEvent>;
    expect(usage.completion_tokens).toBe(12);
    expect((await serve.metric("output_tokens_total")) - outputBefore).toBe(2 * 12);
    expect((await serve.metric("prompt_tokens_total")) - promptBefore).toBe(2 * usage.prompt_tokens);
  });

  it("report usage to a client that asks for it", async () => {
    const body = { ...CHAT, stream: true, stream_options: { include_usage: true } };
    const { text } = await exchange(`${serve.url}/v1/chat/completions`, { body });
    const last = chatEventsOf(text).at(-1);
    expect(last?.choices).toEqual([]);
    expect(last?.usage?.completion_tokens).toBe(12);
  });

  it("time their first token", async () => {
    const before = await serve.metric("time_to_first_token_seconds_count");
    await exchange(`${serve.url}/v1/chat/completions`, { body: { ...CHAT, stream: true } });
    expect((await serve.metric("time_to_first_token_seconds_count")) - before).toBe(1);
  });
});

describe("every generating route, whole and streamed", () => {
  const routes = [
    { path: "/v1/chat/completions", body: CHAT, end: /\[DONE\]/ },
    {
      path: "/v1/completions",
      body: { model: LLAMA_MODEL, prompt: "Sing", max_tokens: 12, ...FIXED },
      end: /\[DONE\]/,
    },
    {
      path: "/v1/responses",
      body: { model: LLAMA_MODEL, input: "Sing", max_output_tokens: 12, ...FIXED },
      end: /response\.completed/,
    },
    { path: "/v1/messages", body: CHAT, end: /message_stop/ },
  ];

  it.each(routes)("$path", async ({ path, body, end }) => {
    const outputBefore = await serve.metric("output_tokens_total");
    const okBefore = await serve.outcomes("ok");
    const whole = await exchange(`${serve.url}${path}`, { body });
    const streamed = await exchange(`${serve.url}${path}`, { body: { ...body, stream: true } });
    expect([whole.status, streamed.status]).toEqual([200, 200]);
    expect(streamed.isWhole).toBe(true);
    expect(streamed.text).toMatch(end);
    expect((await serve.outcomes("ok")) - okBefore).toBe(2);
    expect((await serve.metric("output_tokens_total")) - outputBefore).toBe(2 * 12);
  });
});

it("says the same whole as streamed", async () => {
  const whole = await exchange(`${serve.url}/v1/chat/completions`, { body: CHAT });
  const streamed = await exchange(`${serve.url}/v1/chat/completions`, { body: { ...CHAT, stream: true } });
  const { choices } = JSON.parse(whole.text) as { choices: { message: { content: string } }[] };
  expect(chatTextOf(streamed.text).trim()).toBe(choices[0]?.message.content.trim());
});

it("tokenizes", async () => {
  const { status, text } = await exchange(`${serve.url}/tokenize`, { body: { content: "hi there" } });
  expect(status).toBe(200);
  expect(JSON.parse(text)).toEqual({ tokens: [expect.any(Number), expect.any(Number)] });
});

it("lists the model once, though two servers have it", async () => {
  const { text } = await exchange(`${serve.url}/v1/models`, { method: "GET" });
  const { data } = JSON.parse(text) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual([LLAMA_MODEL]);
});

it("refuses an unknown model, which llama.cpp itself would not", async () => {
  const body = { ...CHAT, model: "another" };
  expect((await exchange(`${engines[0]?.url}/v1/chat/completions`, { body })).status).toBe(200);
  expect((await exchange(`${serve.url}/v1/chat/completions`, { body })).status).toBe(404);
});

it.each(["/v1/embeddings", "/v1/rerank"])("passes on that %s is not supported here", async (path) => {
  const body = { model: LLAMA_MODEL, input: "hi", query: "hi", documents: ["ho"] };
  const alone = await exchange(`${engines[0]?.url}${path}`, { body });
  const balanced = await exchange(`${serve.url}${path}`, { body });
  expect(balanced.status).toBe(501);
  expect(balanced.text).toBe(alone.text);
});

it("embeds where the server does", async () => {
  const embedders = await startBalancedLlama({ count: 1, embeddings: true });
  onTestFinished(embedders.stop);
  const body = { model: LLAMA_MODEL, input: ["a keel", "a sail"] };
  const { status, text } = await exchange(`${embedders.serve.url}/v1/embeddings`, { body });
  expect(status).toBe(200);
  const { data, usage } = JSON.parse(text) as { data: { embedding: number[] }[]; usage: { prompt_tokens: number } };
  expect(data.map(({ embedding }) => embedding.length)).toEqual([64, 64]);
  expect(await embedders.serve.metric("prompt_tokens_total")).toBe(usage.prompt_tokens);
});

describe("a prompt that is longer than a slot's context", () => {
  const body = { ...CHAT, messages: [{ role: "user", content: "keel ".repeat(2 * SLOT_CONTEXT) }] };

  it.each([{ stream: false }, { stream: true }])("gets the engine's own 400 unchanged: %o", async ({ stream }) => {
    const refusedBefore = await serve.outcomes("upstream_4xx");
    const alone = await exchange(`${engines[0]?.url}/v1/chat/completions`, { body: { ...body, stream } });
    const balanced = await exchange(`${serve.url}/v1/chat/completions`, { body: { ...body, stream } });
    expect(balanced.status).toBe(400);
    expect(balanced.text).toBe(alone.text);
    expect(JSON.parse(balanced.text)).toMatchObject({
      error: { type: "exceed_context_size_error", n_ctx: SLOT_CONTEXT },
    });
    expect((await serve.outcomes("upstream_4xx")) - refusedBefore).toBe(1);
  });

  it("is not tried elsewhere and says nothing about health", async () => {
    const answers = [];
    for (let i = 0; i < 6; i++) answers.push(await exchange(`${serve.url}/v1/chat/completions`, { body }));
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(400));
    expect(await serve.metric("attempts_failed_total")).toBe(0);
    expect((await serve.endpoints()).map(({ availability }) => availability)).toEqual(["ready", "ready"]);
  });
});

it("leaves nothing in the ledger", async () => {
  await expect.poll(() => serve.openWork()).toBe(0);
  expect(await serve.metric("requests_in_flight")).toBe(0);
});
