import { Agent } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { code, hold, ok, sse, startFake, stream } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT } from "../support/http-client.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";

describe("HTTP/1.0", () => {
  it.each([
    { what: "without", headers: "" },
    { what: "with", headers: "Connection: keep-alive\r\n" },
  ])("clients $what keep-alive get a stream that ends with its connection", async ({ headers }) => {
    const e1 = await startFake(sse(3));
    const gateway = await startGateway([e1]);
    const request = rawPost(PATH, STREAMED_CHAT, { version: "1.0", headers });
    const received = await new RawClient(gateway.listenUrl).write(request).closes();
    const [head = "", body = ""] = received.split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(head).not.toMatch(/transfer-encoding/i);
    expect(head).toMatch(/connection: close/i);
    expect(body).toMatch(/^data: \{[\s\S]*data: \[DONE\]\n\n$/);
    await expectIdle(gateway);
  });

  it("clients get an answer of known length as it is", async () => {
    const e1 = await startFake(({ response }) => response.writeHead(200, { "content-length": 2 }).end("{}"));
    const gateway = await startGateway([e1]);
    const received = await new RawClient(gateway.listenUrl).write(rawPost(PATH, CHAT, { version: "1.0" })).closes();
    expect(received).toMatch(/content-length: 2\r\n[\s\S]*\r\n\r\n\{\}$/i);
  });
});

describe("one connection", () => {
  it("carries one request after the other", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const sockets = new Set<number | undefined>();
    for (const path of [PATH, "/nowhere", "/v1/models", PATH]) {
      const method = path === "/v1/models" ? "GET" : "POST";
      const body = method === "GET" ? undefined : CHAT;
      const answer = await exchange(`${gateway.listenUrl}${path}`, { method, body, agent });
      expect(answer.status).toBe(path === "/nowhere" ? 404 : 200);
      sockets.add(Object.values(agent.freeSockets).flat()[0]?.localPort);
    }
    expect(sockets.size).toBe(1);
  });

  it("leaves no listeners behind, however many requests it carries", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const e1 = await startFake(sse(1));
    const gateway = await startGateway([e1]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    for (let i = 0; i < 30; i++) await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT, agent });
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
    expect(new Set(e1.calls.map(({ socket }) => socket)).size).toBe(1);
  });

  it("answers requests that do not wait in their order", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl);
    client.write(
      `${rawPost(PATH, CHAT)}${rawPost("/v1/embeddings", { model: "m", input: "x" })}GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    ok("first")(await e1.call(0));
    ok("second")(await e1.call(1));
    const received = await client.receives(/"object":"list"/);
    expect(received).toMatch(/first[\s\S]*second[\s\S]*"object":"list"/);
    client.socket.destroy();
    await expectIdle(gateway);
  });

  it("reads a refused request's body away, or is closed", async () => {
    const gateway = await startGateway([await startFake()]);
    const client = new RawClient(gateway.listenUrl);
    client.write(`POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n`);
    await client.receives(/^HTTP\/1.1 404 /);
    client.write(Buffer.alloc(5_000_000, "x"));
    client.write("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
    await client.receives(/HTTP\/1.1 200 OK/);
    client.socket.destroy();
  });
});

describe("targets and methods", () => {
  it.each(["http://x", "HTTP://user@host:8080", "https://[::1]:443"])(
    "in absolute form (%s) mean their path",
    async (base) => {
      const e1 = await startFake(ok());
      const gateway = await startGateway([e1]);
      const client = new RawClient(gateway.listenUrl).write(rawPost(`${base}${PATH}?a=1`, CHAT));
      await client.receives(/^HTTP\/1.1 200 OK/);
      expect((await e1.call(0)).path).toBe(`${PATH}?a=1`);
      client.socket.destroy();
    },
  );

  it("HEAD of the models has a head and no body", async () => {
    const gateway = await startGateway([await startFake()]);
    const client = new RawClient(gateway.listenUrl);
    client.write("HEAD /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect(await client.closes()).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*content-length: \d+\r\n[\s\S]*\r\n\r\n$/i);
  });

  it.each(["OPTIONS *", "GET http://x", "TRACE /", "DELETE /v1/responses/r1"])(
    "%s finds nothing and breaks nothing",
    async (line) => {
      const e1 = await startFake();
      const gateway = await startGateway([e1]);
      const client = new RawClient(gateway.listenUrl).write(`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(await client.closes()).toMatch(/^HTTP\/1.1 404 [\s\S]*route_not_found/);
      expect(e1.calls).toHaveLength(0);
    },
  );
});

describe("answers without a body", () => {
  it.each([204, 304])("of status %i pass", async (status) => {
    const e1 = await startFake(({ response }) => response.writeHead(status, { "x-a": "1" }).end());
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(answer).toMatchObject({ status, text: "", isWhole: true, headers: { "x-a": "1" } });
    await expectIdle(gateway);
  });

  it("and interim ones before the answer are passed over", async () => {
    const e1 = await startFake((call) => {
      call.response.writeProcessing();
      call.response.writeEarlyHints({ link: "</a>; rel=preload" });
      code(200, "{}")(call);
    });
    const gateway = await startGateway([e1]);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200, text: "{}" });
  });

  it("a stream of nothing but its end mark is whole", async () => {
    const e1 = await startFake(stream("data: [DONE]\n\n"));
    const gateway = await startGateway([e1]);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT })).toMatchObject({ isWhole: true });
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_count")).toBe(0);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });
});
