import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineServer, type EngineServer } from "./server.ts";

const MODEL = "m";
const MESSAGES = [{ role: "user" as const, content: "Sing of keels" }];

let server: EngineServer;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  server = createEngineServer({ listen: "127.0.0.1:0", model: MODEL, speed: 50, apiKey: "k" });
  const { url } = await server.listen();
  openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k" });
  anthropic = new Anthropic({ baseURL: url, apiKey: "k" });
});

afterAll(() => server.close());

describe("the OpenAI client", () => {
  it("chats, streamed and whole", async () => {
    const whole = await openai.chat.completions.create({ model: MODEL, messages: MESSAGES, max_tokens: 9 });
    const stream = openai.chat.completions.stream({
      model: MODEL,
      messages: MESSAGES,
      max_tokens: 9,
      stream_options: { include_usage: true },
    });
    const streamed = await stream.finalChatCompletion();
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
    expect(streamed.usage?.completion_tokens).toBe(9);
  });

  it("follows a response", async () => {
    const stream = openai.responses.stream({ model: MODEL, input: "Sing of keels", max_output_tokens: 9 });
    const response = await stream.finalResponse();
    expect(response.output_text).toMatch(/^\w{3}( \w{3}){8}$/);
    expect(response.usage?.output_tokens).toBe(9);
  });

  it("embeds in its default encoding and lists models", async () => {
    const { data } = await openai.embeddings.create({ model: MODEL, input: ["a", "b"] });
    expect(data.map(({ embedding }) => embedding.length)).toEqual([64, 64]);
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual([MODEL]);
  });
});

describe("the Anthropic client", () => {
  it("chats, streamed and whole", async () => {
    const request = { model: MODEL, messages: MESSAGES, max_tokens: 9 };
    const whole = await anthropic.messages.create(request);
    const streamed = await anthropic.messages.stream(request).finalMessage();
    expect(streamed.content).toEqual(whole.content);
    expect(streamed.usage.output_tokens).toBe(9);
    expect(streamed.stop_reason).toBe("max_tokens");
  });

  it("understands a refusal", async () => {
    const refused = anthropic.messages.create({ model: "other", messages: MESSAGES, max_tokens: 9 });
    await expect(refused).rejects.toBeInstanceOf(Anthropic.NotFoundError);
  });
});
