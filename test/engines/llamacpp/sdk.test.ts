import { beforeAll } from "vitest";
import { describeAnthropicClient } from "../../clients/anthropic-client.ts";
import type { ClientTarget } from "../../clients/client-target.ts";
import { describeOpenAiClient } from "../../clients/openai-client.ts";
import { startBalancedLlama } from "../harness/balanced-llama.ts";
import { LLAMA_MODEL } from "../harness/llama-server.ts";

let target: ClientTarget;

beforeAll(async () => {
  const { serve, stop } = await startBalancedLlama();
  target = {
    url: serve.url,
    model: LLAMA_MODEL,
    untilLimit: { ignore_eos: true, temperature: 0 },
    openWork: () => serve.openWork(),
  };
  return stop;
});

describeOpenAiClient(() => target);
describeAnthropicClient(() => target);
