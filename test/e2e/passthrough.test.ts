import { describe, expect, it } from "vitest";
import { code, hold, ok, startFake, stream, tokenEvent } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, send } from "../support/http-client.ts";
import { testPool } from "../support/test-config.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/audio/transcriptions";
const passthrough = [PATH, "/api/tags"];

describe("a path of the allow-list", () => {
  it("passes with any method, its query and its body as they are", async () => {
    const e1 = await startFake(ok('{"ok":1}'));
    const gateway = await startGateway([e1], { passthrough });
    for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const body = method.startsWith("P") ? "\0\xff not json" : undefined;
      const headers = { "content-type": "application/octet-stream", "accept-encoding": "br" };
      const answer = await exchange(`${gateway.listenUrl}${PATH}?q=1`, { method, body, headers });
      expect(answer).toMatchObject({ status: 200, text: '{"ok":1}', headers: { "x-evenkeel-endpoint": "e1" } });
      const call = e1.calls.at(-1);
      expect(call).toMatchObject({ method, path: `${PATH}?q=1` });
      expect(call?.body).toEqual(Buffer.from(body ?? ""));
      // Nobody reads the answer, so how it is coded is between client and engine.
      expect(call?.headers["accept-encoding"]).toBe("br");
    }
    await expectIdle(gateway);
  });

  it("is never posted to twice: what may have been done goes out on a connection that cannot have died", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1], { passthrough });
    const url = `${gateway.listenUrl}${PATH}`;
    for (let i = 0; i < 2; i++) expect(await exchange(url, { method: "GET" })).toMatchObject({ status: 200 });
    expect(e1.calls[1]?.socket).toBe(e1.calls[0]?.socket);
    e1.behave(({ socket }) => void socket.resetAndDestroy());
    expect(await exchange(url, { method: "POST", body: CHAT })).toMatchObject({ status: 502 });
    expect(e1.calls).toHaveLength(3);
    await expectIdle(gateway);
  });

  it("passes HEAD without waiting for a body", async () => {
    const e1 = await startFake(({ response }) => response.writeHead(200, { "transfer-encoding": "chunked" }).end());
    const gateway = await startGateway([e1], { passthrough });
    const client = new RawClient(gateway.listenUrl).write(
      `HEAD /api/tags HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(await client.closes()).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
    await expectIdle(gateway);
  });

  it("passes answers of any type", async () => {
    const bytes = Buffer.from([0, 1, 2, 253, 254, 255]);
    const e1 = await startFake();
    const gateway = await startGateway([e1], { passthrough });
    for (const type of ["audio/mpeg", "text/vtt", "application/x-ndjson"]) {
      e1.next(code(200, bytes, { "content-type": type }));
      const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: "x" });
      expect(answer.headers["content-type"]).toBe(type);
      expect(answer.body).toEqual(bytes);
    }
  });

  it("passes a stream as it comes", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], { passthrough });
    const client = send(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    const { response } = await e1.call(0);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));
    response.end("data: [DONE]\n\n");
    expect(await client.answer()).toMatchObject({ isWhole: true });
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("asks for no usage and changes no byte but an alias", async () => {
    const e1 = await startFake(stream("data: [DONE]\n\n"));
    const gateway = await startGateway([e1], { passthrough, pool: { aliases: new Map([["x", "m"]]) } });
    await exchange(`${gateway.listenUrl}${PATH}`, { body: '{ "stream":true,"model" : "x" }' });
    expect((await e1.call(0)).body.toString()).toBe('{ "stream":true,"model" : "m" }');
  });

  it("is told apart by pool by its model's name where it has one", async () => {
    const [a, b] = [await startFake(), await startFake()];
    const pools = [testPool([a.url], { name: "a", models: ["a"] }), testPool([b.url], { name: "b", models: ["b"] })];
    const gateway = await startGateway([], { passthrough, pools });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: { model: "b" } })).toMatchObject({ status: 200 });
    expect([a.calls.length, b.calls.length]).toEqual([0, 1]);
    const headers = { "content-type": "text/plain" };
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: "x", headers })).toMatchObject({ status: 404 });
  });

  it("is left by a client that goes", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], { passthrough });
    const client = send(`${gateway.listenUrl}/api/tags`, { method: "GET" });
    client.request.end();
    const call = await e1.call(0);
    client.abort();
    await until(() => call.isAborted);
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });

  it.each([
    "/v1/audio/transcriptions/",
    "/v1/audio",
    "/v1/audio/transcriptions/../../../flush_cache",
    "/api/tags%2f..",
  ])("is only that path: %s is another", async (path) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { passthrough });
    const client = new RawClient(gateway.listenUrl).write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(await client.closes()).toMatch(/^HTTP\/1.1 404 /);
    expect(e1.calls).toHaveLength(0);
  });
});

describe("a multipart upload", () => {
  const BOUNDARY = "--x y'()+_,-./:=?z";
  const part = (name: string, value: string, more = ""): string =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
  const file = (bytes: number): string =>
    part(
      "file",
      `RIFF\r\n--not the boundary\r\nname="model"\r\n\r\nz${"a".repeat(bytes)}`,
      '; filename="a.wav"\r\nContent-Type: audio/wav',
    );
  const end = `--${BOUNDARY}--\r\n`;
  const headers = { "content-type": `multipart/form-data; charset=x; boundary="${BOUNDARY}"` };

  it.each([
    { where: "before the file", body: part("model", "b") + file(100) + end },
    { where: "behind a file of 20 MB", body: file(20_000_000) + part("model", "b") + end },
    {
      where: "between other fields",
      body: part("language", "de") + part("model", "b") + part("prompt", "model") + end,
    },
  ])("is told apart by a model $where, and passes byte for byte", async ({ body }) => {
    const [a, b] = [await startFake(), await startFake()];
    const pools = [testPool([a.url], { name: "a", models: ["a"] }), testPool([b.url], { name: "b", models: ["b"] })];
    const gateway = await startGateway([], { passthrough, pools });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body, headers })).toMatchObject({ status: 200 });
    expect(a.calls).toHaveLength(0);
    expect(b.calls[0]?.body.equals(Buffer.from(body))).toBe(true);
    expect(b.calls[0]?.headers["content-type"]).toBe(headers["content-type"]);
  });

  it.each([
    { what: "without a model", body: file(100) + end },
    { what: "that is cut", body: part("language", "de").slice(0, 40) },
    { what: "that is none", body: "{}" },
  ])("$what goes where there is only one pool", async ({ body }) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { passthrough });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body, headers })).toMatchObject({ status: 200 });
    expect((await e1.call(0)).body.toString()).toBe(body);
  });

  it("has an alias replaced in its field alone", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { passthrough, pool: { aliases: new Map([["whisper-1", "m"]]) } });
    const named = (model: string): string => part("language", "de") + part("model", model) + file(10) + end;
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: named("whisper-1"), headers })).toMatchObject({
      status: 200,
    });
    expect((await e1.call(0)).body.toString()).toBe(named("m"));
  });
});
