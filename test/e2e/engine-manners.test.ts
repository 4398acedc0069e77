import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type Behaviour,
  code,
  DONE_EVENT,
  FINISH_EVENT,
  ok,
  startFake,
  stream,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

describe("an engine that ends its connections", () => {
  it("after every few requests costs none of them anything", async () => {
    let served = 0;
    const e1 = await startFake((call) => {
      if (++served % 5 === 0) call.response.shouldKeepAlive = false;
      ok()(call);
    });
    const gateway = await startGateway([e1]);
    for (let i = 0; i < 40; i++) {
      expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    }
    expect(new Set(e1.calls.map(({ socket }) => socket)).size).toBe(8);
    expect(e1.calls).toHaveLength(40);
    expect(await gateway.outcomes()).toEqual({ ok: 40 });
  });

  it("with every refusal has its connection ended and the client's kept", async () => {
    const e1 = await startFake(code(400, { error: { message: "no" } }, { connection: "close" }));
    const gateway = await startGateway([e1]);
    const refused = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(refused).toMatchObject({ status: 400, isWhole: true });
    e1.behave(ok());
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    expect(e1.calls).toHaveLength(2);
  });
});

describe("an engine that queues without a word", () => {
  it.each([
    { kind: "whole", body: CHAT, end: ok() },
    { kind: "streamed", body: STREAMED_CHAT, end: stream(tokenEvent(0) + FINISH_EVENT + DONE_EVENT) },
  ])("is waited for by a $kind request beyond every limit but that of the first byte", async ({ body, end }) => {
    const e1 = await startFake((call) => void setTimeout(() => end(call), 450));
    const gateway = await startGateway([e1], { timeouts: { idleMs: 100 } });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body })).toMatchObject({ status: 200, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("and sends its head long before its first token is timed by the token", async () => {
    const e1 = await startFake(({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      response.write(":\n\n");
      setTimeout(() => response.end(tokenEvent(0) + FINISH_EVENT + DONE_EVENT), 400);
    });
    const gateway = await startGateway([e1]);
    await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_count")).toBe(1);
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_sum")).toBeGreaterThan(0.35);
  });
});

describe("refusals in an engine's own words", () => {
  it.each<{ readonly what: string; readonly behaviour: Behaviour; readonly status: number; readonly text: string }>([
    {
      what: "a key that is refused with a string",
      behaviour: code(401, '{"error":"Unauthorized"}'),
      status: 401,
      text: '{"error":"Unauthorized"}',
    },
    {
      what: "a route it does not have",
      behaviour: code(404, '{"detail":"Not Found"}'),
      status: 404,
      text: '{"detail":"Not Found"}',
    },
    {
      what: "a prompt beyond its context",
      behaviour: code(400, '{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}'),
      status: 400,
      text: '{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}',
    },
  ])("pass unchanged, once, and harm nobody else: $what", async ({ behaviour, status, text }) => {
    const [e1, e2] = [await startFake(behaviour), await startFake(behaviour)];
    const gateway = await startGateway([e1, e2]);
    for (let i = 0; i < 50; i++) {
      const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
      expect(answer).toMatchObject({ status, text, isWhole: true });
    }
    expect(e1.calls.length + e2.calls.length).toBe(50);
    for (const fake of [e1, e2]) fake.behave(ok());
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    expect(gateway.runtime.pools[0]?.balancer.members.map(({ availability }) => availability)).toEqual([
      "ready",
      "ready",
    ]);
  });
});

/** A llama.cpp server that was told to end: its port is closed and its open stream stays, without a word. */
async function startEnding(): Promise<{ readonly url: string; readonly streams: ServerResponse[]; end(): void }> {
  const streams: ServerResponse[] = [];
  const server: Server = createServer((request, response) => {
    request.resume();
    if (request.method === "GET") {
      const data = [{ id: "m", object: "model" }];
      response.writeHead(200, { "content-type": "application/json", connection: "close" });
      response.end(JSON.stringify({ object: "list", data }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(tokenEvent(0));
    streams.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => server.closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, streams, end: () => void server.close() };
}

describe("an engine that closes its port and leaves its streams open", () => {
  it("has them ended with an error at the idle limit, while new requests go elsewhere", async () => {
    const [e1, e2] = [await startEnding(), await startFake(stream(tokenEvent(0) + FINISH_EVENT + DONE_EVENT))];
    const gateway = await startGateway([e1.url, e2], { timeouts: { idleMs: 1_000 } });
    const url = `${gateway.listenUrl}${PATH}`;
    const clients = [send(url, { body: STREAMED_CHAT }), send(url, { body: STREAMED_CHAT })];
    await until(() => e1.streams.length === 1);
    e1.end();
    for (let i = 0; i < 6; i++) {
      const answer = await exchange(url, { body: STREAMED_CHAT });
      expect(answer).toMatchObject({ isWhole: true, headers: { "x-evenkeel-endpoint": "e2" } });
    }
    const answers = await Promise.all(clients.map((client) => client.answer()));
    const [cut] = answers.filter(({ isWhole }) => !isWhole);
    expect(cut?.text).toContain("upstream_timeout");
    expect(cut?.text).not.toContain("[DONE]");
    expect(await gateway.outcomes()).toEqual({ ok: 7, stalled: 1 });
    await expectIdle(gateway);
  });
});
