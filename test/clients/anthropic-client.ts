import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, it } from "vitest";
import type { ClientTarget } from "./client-target.ts";

const TOKENS = 9;

/** What the Anthropic SDK must be able to do through the balancer, whatever engine is behind it. */
export function describeAnthropicClient(target: () => ClientTarget): void {
  const client = (): Anthropic => new Anthropic({ baseURL: target().url, apiKey: "none", maxRetries: 0 });
  const message = () => ({
    model: target().model,
    messages: [{ role: "user" as const, content: "Sing of keels" }],
    max_tokens: TOKENS,
    ...target().untilLimit,
  });

  describe("the Anthropic client", () => {
    it("sends a message and is told the request's id", async () => {
      const answer = await client().messages.create(message(), { headers: { "x-request-id": "keel-2" } });
      expect(answer.content[0]).toMatchObject({ type: "text", text: expect.stringMatching(/\S/) });
      expect(answer.usage.output_tokens).toBe(TOKENS);
      expect(answer.stop_reason).toBe("max_tokens");
      expect(answer._request_id).toBe("keel-2");
    });

    it("sends a message and follows the stream", async () => {
      const answer = await client().messages.stream(message()).finalMessage();
      expect(answer.content[0]).toMatchObject({ type: "text", text: expect.stringMatching(/\S/) });
      expect(answer.usage.output_tokens).toBe(TOKENS);
      expect(answer.stop_reason).toBe("max_tokens");
    });

    it("understands that there is no such model", async () => {
      const refused = client().messages.create({ ...message(), model: "another" }, { maxRetries: 2 });
      const error: unknown = await refused.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Anthropic.NotFoundError);
      expect(error).toMatchObject({
        status: 404,
        requestID: expect.any(String),
        error: { type: "error", error: { type: "not_found_error" }, request_id: expect.any(String) },
      });
    });

    it("may leave in the middle of a stream, and nothing stays open", async () => {
      const stream = client().messages.stream({ ...message(), max_tokens: 2000 });
      const outcome = stream.finalMessage().catch((reason: unknown) => reason);
      await new Promise<void>((resolve) => stream.once("text", () => resolve()));
      stream.abort();
      expect(await outcome).toBeInstanceOf(Anthropic.APIUserAbortError);
      await expect.poll(() => target().openWork()).toBe(0);
    });
  });
}
