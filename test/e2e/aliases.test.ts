import { describe, expect, it } from "vitest";
import { type Behaviour, chatEvent, DONE_EVENT, FINISH_EVENT, ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT } from "../support/http-client.ts";
import { testPool } from "../support/test-config.ts";
import { startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const aliases = new Map([["x", "org/m"]]);

describe("an answer to a request by alias", () => {
  const message = {
    role: "assistant",
    content: 'the "model" is "org/m"',
    tool_calls: [{ function: { arguments: '{"model":"x"}' } }],
  };

  it("names the model as its engine did, whole", async () => {
    const body = { id: "c", model: "org/m", choices: [{ index: 0, message, finish_reason: "stop" }] };
    const e1 = await startFake(ok(JSON.stringify(body)), { models: ["org/m"] });
    const gateway = await startGateway([e1], { pool: { aliases } });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: { ...CHAT, model: "x" } });
    expect(answer).toMatchObject({ status: 200, text: JSON.stringify(body) });
    expect(JSON.parse((await e1.call(0)).body.toString()).model).toBe("org/m");
  });

  it("and streamed, wherever reads cut the name", async () => {
    const event = chatEvent({ choices: [{ index: 0, delta: message, finish_reason: null }] }).replace('"m"', '"org/m"');
    const text = event + FINISH_EVENT + DONE_EVENT;
    const at = text.indexOf('"model"') + 4;
    const inPieces: Behaviour = async ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const piece of [text.slice(0, at), text.slice(at, at + 6), text.slice(at + 6)]) {
        response.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      response.end();
    };
    const gateway = await startGateway([await startFake(inPieces, { models: ["org/m"] })], { pool: { aliases } });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: { ...STREAMED_CHAT, model: "x" } });
    expect(answer).toMatchObject({ text, isWhole: true });
  });
});

describe("a name that is nearly a model's", () => {
  it.each(["X", " x", "x ", "Org/M", "org/m ", "org%2Fm", "", "__proto__", "constructor"])(
    "%j is another name: it is refused and reaches no endpoint",
    async (model) => {
      const e1 = await startFake(ok(), { models: ["org/m"] });
      const other = await startFake(ok(), { models: ["n"] });
      const pools = [
        testPool([e1.url], { name: "a", models: ["org/m"], aliases }),
        testPool([other.url], { name: "b", models: ["n"] }),
      ];
      const gateway = await startGateway([], { pools });
      await until(() => gateway.runtime.directory.names.length === 3);
      const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: { ...CHAT, model } });
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.text).error).toMatchObject({ type: "invalid_request_error", code: "model_not_found" });
      expect(e1.calls.length + other.calls.length).toBe(0);
    },
  );
});
