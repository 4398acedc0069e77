import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEXT_APIS, type TextApi } from "./text-api.ts";
import { type Call, type Question, TextClient } from "./text-call.ts";

const [chat] = TEXT_APIS as readonly [TextApi];
const token = (content: string): string => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;
const FINISH = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const DONE = "data: [DONE]\n\n";
const ERROR = 'data: {"error":{"message":"dead","code":500}}\n\n';

/** What the server answers, and whether it then cuts the connection. */
interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  readonly isCut?: boolean;
}

let answer: Answer = { body: "" };
let server: Server;
let origin = "";

beforeAll(async () => {
  server = createServer((_request, response) => {
    const { status = 200, headers = { "content-type": "text/event-stream" }, body, isCut } = answer;
    response.writeHead(status, headers);
    response.write(body, () => (isCut ? response.socket?.destroySoon() : response.end()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function ask(given: Answer, question: Partial<Question> = {}): Promise<Call> {
  answer = given;
  const client = new TextClient(origin, "m");
  const asked = { api: chat, isStream: true, body: {}, outputTokens: 2, texts: ["ab"], ...question };
  const call = await client.ask("id", asked);
  client.close();
  return call;
}

describe("a client that asks for text", () => {
  it.each<[string, Answer, Call["ending"], string]>([
    ["all of it", { body: token("a") + token("b") + FINISH + DONE }, "whole", ""],
    ["no end mark", { body: token("a") + token("b") + FINISH }, "false", "no end mark of chat"],
    ["no reason to stop", { body: token("a") + token("b") + DONE }, "false", "no reason to stop"],
    ["another text", { body: token("a") + FINISH + DONE }, "false", "another text"],
    ["an error and an end mark", { body: token("a") + ERROR + DONE }, "broken", "500"],
    ["an error and a cut", { body: token("a") + ERROR, isCut: true }, "broken", "500"],
    ["a cut behind the end mark", { body: token("ab") + FINISH + DONE, isCut: true }, "broken", "ECONNRESET"],
  ])("takes a stream with %s for what it is", async (_name, given, ending, cause) => {
    expect(await ask(given)).toMatchObject({ ending, cause, status: 200 });
  });

  it("counts the tokens where the engine says them", async () => {
    const usage = 'data: {"choices":[],"usage":{"completion_tokens":3}}\n\n';
    const call = await ask({ body: token("ab") + FINISH + usage + DONE });
    expect(call).toMatchObject({ ending: "false", cause: "another number of tokens" });
  });

  it("tells the balancer's own refusal from an engine's", async () => {
    const body = '{"error":{"message":"x","code":503}}';
    expect(await ask({ status: 503, headers: {}, body })).toMatchObject({ ending: "refused", cause: "503" });
    const own = await ask({ status: 503, headers: { "x-evenkeel-reason": "no_available_endpoint" }, body });
    expect(own).toMatchObject({ ending: "refused", cause: "no_available_endpoint", isOwnRefusal: true });
  });

  it("says that nothing came where nobody listens", async () => {
    const client = new TextClient("http://127.0.0.1:1", "m");
    const call = await client.ask("id", { api: chat, isStream: false, body: {}, outputTokens: 1, texts: undefined });
    expect(call).toMatchObject({ ending: "lost", cause: "ECONNREFUSED", status: 0 });
  });

  it.each(TEXT_APIS)("reads whole answers of $name", async (api) => {
    const bodies: Readonly<Record<TextApi["name"], object>> = {
      chat: { choices: [{ index: 0, message: { content: "ab" }, finish_reason: "stop" }] },
      completions: { choices: [{ index: 0, text: "ab", finish_reason: "length" }] },
      messages: { content: [{ text: "a" }, { text: "b" }], stop_reason: "end_turn" },
      responses: { output: [{ content: [{ text: "ab" }] }], status: "completed" },
    };
    const given = { headers: { "content-type": "application/json" }, body: JSON.stringify(bodies[api.name]) };
    expect(await ask(given, { api, isStream: false })).toMatchObject({ ending: "whole", texts: ["ab"] });
  });
});
