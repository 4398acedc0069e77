import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { policyDefinitions } from "../../../src/core/index.ts";
import { exchange } from "../../support/http-client.ts";
import { llamaChat } from "../harness/chat.ts";
import { LlamaServer } from "../harness/llama-server.ts";
import { Serve } from "../harness/serve.ts";

let engines: LlamaServer[];

beforeAll(async () => {
  engines = await LlamaServer.startSeveral(2);
  return async () => {
    for (const engine of engines) await engine.kill();
  };
});

describe.each(policyDefinitions)("$name", ({ name: policy }) => {
  it("serves streams and whole answers side by side, and says that it did", async () => {
    const serve = await Serve.start(
      engines.map(({ url }) => url),
      ["--policy", policy],
    );
    onTestFinished(() => serve.stop());
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        exchange(`${serve.url}/v1/chat/completions`, {
          body: { ...llamaChat(16), stream: i % 2 === 0 },
          headers: { "x-session-id": `session-${i % 3}` },
        }),
      ),
    );
    expect(answers.map(({ status, isWhole }) => [status, isWhole])).toEqual(Array(8).fill([200, true]));
    expect(new Set(answers.map(({ headers }) => headers["x-evenkeel-policy"]))).toEqual(new Set([policy]));
    await expect.poll(() => serve.openWork()).toBe(0);
    expect(await serve.outcomes("ok")).toBe(8);
    expect(await serve.metric("output_tokens_total")).toBe(8 * 16);
  });
});
