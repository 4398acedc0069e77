import OpenAI from "openai";
import { beforeAll, expect, it } from "vitest";
import { describeAnthropicClient } from "./anthropic-client.ts";
import { type BuiltInTarget, startBuiltInTarget } from "./built-in-target.ts";
import { describeOpenAiClient } from "./openai-client.ts";

let target: BuiltInTarget;

beforeAll(async () => {
  target = await startBuiltInTarget();
  return target.close;
});

describeOpenAiClient(() => target);
describeAnthropicClient(() => target);

it("embeds with the OpenAI client, in the encoding it asks for by itself", async () => {
  const client = new OpenAI({ baseURL: `${target.url}/v1`, apiKey: "none", maxRetries: 0 });
  const { data, usage } = await client.embeddings.create({ model: target.model, input: ["a keel", "a sail"] });
  expect(data.map(({ embedding }) => embedding.length)).toEqual([64, 64]);
  expect(usage.prompt_tokens).toBeGreaterThan(0);
});
