import { describe, expect, it, onTestFinished } from "vitest";
import { hold, ok, sse, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const HEAD = `POST ${PATH} HTTP/1.1\r\nHost: x\r\n`;
const MODELS = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";

function connectTo(url: string): RawClient {
  const client = new RawClient(url);
  onTestFinished(() => void client.socket.destroy());
  return client;
}

describe("the limit on connections", () => {
  it("lets those that are open go on, and tells the next that there are too many", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], { limits: { connections: 3 } });
    const open = [1, 2, 3].map(() => connectTo(gateway.listenUrl));
    for (const client of open) await client.write(MODELS).receives(/200 OK/);
    const answers = await Promise.all(
      [1, 2, 3].map(() => connectTo(gateway.listenUrl).write(rawPost(PATH, CHAT)).closes()),
    );
    for (const answer of answers) {
      expect(answer).toMatch(
        /^HTTP\/1.1 503 [\s\S]*retry-after: 1\r\n[\s\S]*connection: close[\s\S]*too_many_connections/i,
      );
    }
    expect(e1.calls).toHaveLength(0);
    open[0]?.write(rawPost(PATH, CHAT));
    ok()(await e1.call(0));
    await open[0]?.receives(/"hello"/);
    expect(await gateway.outcomes()).toEqual({ ok: 4, too_many_connections: 3 });
  });

  it("takes new ones as soon as old ones are closed", async () => {
    const gateway = await startGateway([await startFake()], { limits: { connections: 1 } });
    for (let i = 0; i < 5; i++) {
      const client = connectTo(gateway.listenUrl);
      await client.write(MODELS).receives(/200 OK/);
      client.socket.destroy();
      await until(async () => (await exchange(`${gateway.listenUrl}/v1/models`, { method: "GET" })).status === 200);
    }
  });

  it("closes those without a word that come in spite of it in their hundreds", async () => {
    const gateway = await startGateway([await startFake()], { limits: { connections: 1 } });
    const clients = Array.from({ length: 300 }, () => connectTo(gateway.listenUrl));
    await until(() => clients.filter(({ isClosed }) => isClosed).length >= 300 - 1 - 256);
    await clients[0]?.write(MODELS).receives(/200 OK/);
    expect((await gateway.outcomes()).too_many_connections).toBeGreaterThanOrEqual(300 - 1 - 256);
  });
});

describe("a client that is slow", () => {
  it.each([
    { what: "to begin", sent: "" },
    { what: "with its head", sent: HEAD },
    { what: "with the first line", sent: "POST /v1" },
  ])("$what is told so, and its connection closed", async ({ sent }) => {
    const gateway = await startGateway([await startFake()], { timeouts: { clientHeadMs: 200 } });
    const received = await connectTo(gateway.listenUrl).write(sent).closes();
    expect(received).toMatch(
      /^HTTP\/1.1 408 Request Timeout\r\n[\s\S]*connection: close[\s\S]*"code":"request_timeout"/,
    );
    expect(await gateway.outcomes()).toEqual({ request_timeout: 1 });
  });

  it("with its head is so however steadily it sends", async () => {
    const gateway = await startGateway([await startFake()], { timeouts: { clientHeadMs: 300 } });
    const client = connectTo(gateway.listenUrl).write(HEAD);
    const timer = setInterval(() => client.write("a: 1\r\n"), 20);
    onTestFinished(() => clearInterval(timer));
    expect(await client.closes()).toMatch(/^HTTP\/1.1 408 /);
  });

  it("with its body is told so in the dialect of its route", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { timeouts: { clientBodyMs: 200 } });
    const head = `POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n`;
    const client = connectTo(gateway.listenUrl).write(`${head}{`);
    expect(await client.closes()).toMatch(/^HTTP\/1.1 408 [\s\S]*connection: close[\s\S]*"type":"error"/i);
    expect(e1.calls).toHaveLength(0);
    expect(await gateway.outcomes()).toEqual({ request_timeout: 1 });
    await expectIdle(gateway);
  });

  it("between requests is none: its connection stays open for longer than a head may take", async () => {
    const gateway = await startGateway([await startFake()], { timeouts: { clientHeadMs: 100, keepAliveMs: 5_000 } });
    const client = connectTo(gateway.listenUrl).write(MODELS);
    await client.receives(/200 OK/);
    await new Promise((resolve) => setTimeout(resolve, 400));
    await client.write(MODELS).receives(/200 OK[\s\S]*200 OK/);
  });

  it("with a second request does not cut the stream of its first", async () => {
    const gateway = await startGateway([await startFake(sse(30, 20))], { timeouts: { clientHeadMs: 100 } });
    const client = connectTo(gateway.listenUrl).write(rawPost(PATH, STREAMED_CHAT) + HEAD);
    expect(await client.closes()).toMatch(/data: \[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1.1 408 /);
    expect(await gateway.outcomes()).toEqual({ ok: 1, request_timeout: 1 });
  });
});

describe("the limit on what is buffered", () => {
  const LIMIT = 1_000_000;
  const bodyOf = (bytes: number): string => JSON.stringify({ ...CHAT, padding: "x".repeat(bytes) });

  it("refuses what has no room, while what is there is served, and takes more when that is done", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], { limits: { bufferedBytes: LIMIT } });
    const url = `${gateway.listenUrl}${PATH}`;
    const first = send(url, { body: bodyOf(600_000) });
    const call = await e1.call(0);
    const refused = await exchange(url, { body: bodyOf(600_000) });
    expect(refused).toMatchObject({ status: 503, headers: { "retry-after": "1", connection: "close" } });
    expect(JSON.parse(refused.text).error).toMatchObject({ code: "too_much_buffered" });
    ok()(call);
    expect(await first.answer()).toMatchObject({ status: 200 });
    e1.behave(ok());
    expect(await exchange(url, { body: bodyOf(600_000) })).toMatchObject({ status: 200 });
    expect(await gateway.outcomes()).toEqual({ ok: 2, too_much_buffered: 1 });
    await expectIdle(gateway);
  });

  it("is not taken up by what is only announced", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { limits: { bufferedBytes: LIMIT } });
    const announced = Array.from({ length: 20 }, () =>
      connectTo(gateway.listenUrl).write(`${HEAD}Content-Length: 900000\r\n\r\n{`),
    );
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: bodyOf(500_000) })).toMatchObject({ status: 200 });
    for (const client of announced) client.socket.destroy();
    await until(async () => (await gateway.outcomes()).client_closed === 20);
  });

  it("is given back however requests end", async () => {
    const e1 = await startFake(sse(3));
    const gateway = await startGateway([e1], { limits: { bufferedBytes: LIMIT, bodyBytes: 800_000 } });
    const url = `${gateway.listenUrl}${PATH}`;
    const large = bodyOf(700_000);
    for (let i = 0; i < 5; i++) {
      expect((await exchange(url, { body: large })).status).toBe(200);
      expect((await exchange(url, { body: bodyOf(800_000) })).status).toBe(413);
      expect((await exchange(url, { body: large.slice(1) })).status).toBe(400);
      expect((await exchange(url, { body: large.replace('"m"', '"x"') })).status).toBe(404);
      const chunked = send(url);
      chunked.request.write(large);
      await until(() => chunked.request.writableLength === 0);
      chunked.abort();
      await until(async () => (await gateway.outcomes()).client_closed === i + 1);
    }
    expect((await exchange(url, { body: large })).status).toBe(200);
    await expectIdle(gateway);
  });
});
