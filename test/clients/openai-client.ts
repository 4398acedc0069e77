import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import type { ClientTarget } from "./client-target.ts";

const TOKENS = 9;

/** What the OpenAI SDK must be able to do through the balancer, whatever engine is behind it. */
export function describeOpenAiClient(target: () => ClientTarget): void {
  const client = (): OpenAI => new OpenAI({ baseURL: `${target().url}/v1`, apiKey: "none", maxRetries: 0 });
  const chat = () => ({
    model: target().model,
    messages: [{ role: "user" as const, content: "Sing of keels" }],
    max_tokens: TOKENS,
    ...target().untilLimit,
  });
  const completion = () => ({ model: target().model, prompt: "Sing", max_tokens: TOKENS, ...target().untilLimit });
  const response = () => ({
    model: target().model,
    input: "Sing of keels",
    max_output_tokens: TOKENS,
    ...target().untilLimit,
  });

  describe("the OpenAI client", () => {
    it("chats and is told the request's id", async () => {
      const answer = await client().chat.completions.create(chat(), { headers: { "x-request-id": "keel-1" } });
      expect(answer.choices[0]?.message.content).not.toBe("");
      expect(answer.usage?.completion_tokens).toBe(TOKENS);
      expect(answer._request_id).toBe("keel-1");
    });

    it("chats in a stream, with usage if it asks for it", async () => {
      const stream = client().chat.completions.stream({ ...chat(), stream_options: { include_usage: true } });
      const { choices, usage } = await stream.finalChatCompletion();
      expect(choices[0]?.finish_reason).toBe("length");
      expect(choices[0]?.message.content).not.toBe("");
      expect(usage?.completion_tokens).toBe(TOKENS);
    });

    it("chats in a stream without usage if it does not ask", async () => {
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      for await (const chunk of await client().chat.completions.create({ ...chat(), stream: true })) chunks.push(chunk);
      expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true);
      expect(chunks.some(({ usage }) => usage !== undefined && usage !== null)).toBe(false);
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("length");
    });

    it("completes, whole and in a stream", async () => {
      const whole = await client().completions.create(completion());
      expect(whole.usage?.completion_tokens).toBe(TOKENS);
      let text = "";
      for await (const chunk of await client().completions.create({ ...completion(), stream: true })) {
        text += chunk.choices[0]?.text ?? "";
      }
      expect(text).not.toBe("");
    });

    it("follows responses, whole and in a stream", async () => {
      const whole = await client().responses.create(response());
      expect(whole.output_text).not.toBe("");
      expect(whole.usage?.output_tokens).toBe(TOKENS);
      const events: OpenAI.Responses.ResponseStreamEvent[] = [];
      for await (const event of await client().responses.create({ ...response(), stream: true })) events.push(event);
      expect(events.filter(({ type }) => type === "response.output_text.delta").length).toBeGreaterThan(0);
      expect(events.at(-1)).toMatchObject({
        // At its limit a response is incomplete by OpenAI's word; not every engine makes the difference.
        type: expect.stringMatching(/^response\.(completed|incomplete)$/),
        response: { usage: { output_tokens: TOKENS } },
      });
    });

    it("lists models and finds one", async () => {
      const { data } = await client().models.list();
      expect(data.map(({ id }) => id)).toEqual([target().model]);
      expect((await client().models.retrieve(target().model)).id).toBe(target().model);
    });

    it("understands that there is no such model", async () => {
      const refused = client().chat.completions.create({ ...chat(), model: "another" }, { maxRetries: 2 });
      const error: unknown = await refused.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(OpenAI.NotFoundError);
      expect(error).toMatchObject({ status: 404, code: "model_not_found", requestID: expect.any(String) });
    });

    it("may leave in the middle of a stream, and nothing stays open", async () => {
      const stream = await client().chat.completions.create({ ...chat(), max_tokens: 2000, stream: true });
      for await (const chunk of stream) {
        if (chunk.choices[0]?.delta.content) break;
      }
      await expect.poll(() => target().openWork()).toBe(0);
    });

    it("may leave while it waits for a whole answer, and nothing stays open", async () => {
      const leave = new AbortController();
      const call = client().chat.completions.create({ ...chat(), max_tokens: 400 }, { signal: leave.signal });
      const outcome = call.catch((reason: unknown) => reason);
      await expect.poll(() => target().openWork()).toBeGreaterThan(0);
      leave.abort();
      expect(await outcome).toBeInstanceOf(OpenAI.APIUserAbortError);
      await expect.poll(() => target().openWork()).toBe(0);
    });
  });
}
