import * as zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { type FakeUpstream, ok, sse, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, send } from "../support/http-client.ts";
import { testEndpoint, testPool } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";

/** What no serializer would write: odd spacing, repeated keys, escapes, huge numbers, and fields nobody knows. */
const ODD_BODY = `{ "model" :"m",\t"messages":[ {"role":"user","content":"\\u00e9\\ud83d\\ude00 \u00fc \\/ \\n"} ]\r\n,
  "temperature" : 1.0e+00, "seed":12345678901234567890, "dup":1,"dup" :2, "": null, "stop":[  ],
  ${Array.from({ length: 30 }, (_, i) => `"vendor_${i}" : {"nested": [${i}, {"deep" :"x"}]}`).join(" ,\n")} } `;

const PATH = "/v1/chat/completions";

const { brotliCompressSync, deflateSync, gzipSync } = zlib;

async function bodySeen(e1: FakeUpstream, gateway: TestGateway, body: unknown, headers = {}): Promise<string> {
  const before = e1.calls.length;
  expect(await exchange(`${gateway.listenUrl}${PATH}`, { body, headers })).toMatchObject({ status: 200 });
  const call = await e1.call(before);
  expect(call.headers["content-length"]).toBe(String(call.body.length));
  expect(call.headers["transfer-encoding"]).toBeUndefined();
  return call.body.toString();
}

describe("request bodies", () => {
  it("arrive byte for byte", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    expect(await bodySeen(e1, gateway, ODD_BODY)).toBe(ODD_BODY);
  });

  it("arrive byte for byte when they come in chunks", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`);
    for (let i = 0; i < ODD_BODY.length; i += 100) client.request.write(ODD_BODY.slice(i, i + 100));
    client.request.end();
    expect(await client.answer()).toMatchObject({ status: 200 });
    const call = await e1.call(0);
    expect(call.body.toString()).toBe(ODD_BODY);
    expect(call.headers["content-length"]).toBe(String(Buffer.byteLength(ODD_BODY)));
  });

  it.each([
    { prompt: "text" },
    { prompt: ["a", "b"] },
    { prompt: [1, 2, 3] },
    { prompt: [[1, 2], [3]] },
    { prompt: null },
    { prompt: { no: "known shape" } },
    {},
  ])("of completions arrive whatever the prompt's shape: %j", async (prompt) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { pool: { policy: { name: "least_delay", options: {} } } });
    const body = { model: "m", ...prompt };
    expect(await exchange(`${gateway.listenUrl}/v1/completions`, { body })).toMatchObject({ status: 200 });
    expect((await e1.call(0)).body.toString()).toBe(JSON.stringify(body));
  });

  it.each([
    { content: "text" },
    { content: [{ type: "text", text: "a" }] },
    { content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(200_000)}` } }] },
    { content: null },
    { content: 5 },
    {},
  ])("of chat arrive whatever the content's shape", async (content) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { pool: { policy: { name: "least_delay", options: {} } } });
    const body = { model: "m", messages: [{ role: "user", ...content }] };
    expect(await bodySeen(e1, gateway, body)).toBe(JSON.stringify(body));
  });

  it("that are compressed are read for routing and pass as they came", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([], {
      pools: [testPool([e1.url], { name: "a", models: ["other"] }), testPool([e1.url], { name: "b", models: ["m"] })],
    });
    const zstd = "zstdCompressSync" in zlib && { zstd: zlib.zstdCompressSync as typeof zlib.gzipSync };
    const codings = { gzip: gzipSync, "x-gzip": gzipSync, deflate: deflateSync, br: brotliCompressSync, ...zstd };
    for (const [coding, compress] of Object.entries(codings)) {
      const body = compress(JSON.stringify(CHAT));
      const before = e1.calls.length;
      const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body, headers: { "content-encoding": coding } });
      expect(answer.status).toBe(200);
      const call = await e1.call(before);
      expect(call.headers["content-encoding"]).toBe(coding);
      expect(call.body).toEqual(body);
    }
  });

  it("in a coding that cannot be read are routed without looking inside", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const body = Buffer.from([1, 2, 3, 255]);
    const headers = { "content-encoding": "x-own" };
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body, headers })).toMatchObject({ status: 200 });
    const call = await e1.call(0);
    expect(call.body).toEqual(body);
    expect(call.headers["content-encoding"]).toBe("x-own");
  });

  it("that are not what their coding says are refused, and so is a small one that grows over the limit", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { limits: { bodyBytes: 10_000 } });
    const headers = { "content-encoding": "gzip" };
    const wrong = await exchange(`${gateway.listenUrl}${PATH}`, { body: "no gzip", headers });
    expect(wrong.status).toBe(400);
    expect(JSON.parse(wrong.text).error).toMatchObject({
      code: "invalid_body",
      message: "The body is not valid gzip.",
    });
    const bomb = gzipSync(Buffer.alloc(1_000_000, "a"));
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: bomb, headers })).toMatchObject({ status: 413 });
    expect(e1.calls).toHaveLength(0);
  });
});

describe("an alias", () => {
  it.each(["x", "a-much-longer-name/than-the-models", "größer-😀"])(
    "%s changes the model's name alone",
    async (alias) => {
      const e1 = await startFake();
      const gateway = await startGateway([e1], { pool: { aliases: new Map([[alias, "m"]]) } });
      const named = (name: string): string => ODD_BODY.replace('"m"', JSON.stringify(name));
      expect(await bodySeen(e1, gateway, named(alias))).toBe(named("m"));
    },
  );

  it("may stand for a name of many bytes", async () => {
    const e1 = await startFake(ok(), { models: ["größer-😀"] });
    const gateway = await startGateway([e1], { pool: { aliases: new Map([["x", "größer-😀"]]) } });
    expect(await bodySeen(e1, gateway, { ...CHAT, model: "x" })).toBe(JSON.stringify({ ...CHAT, model: "größer-😀" }));
  });

  it("in a compressed body sends the body plain", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { pool: { aliases: new Map([["x", "m"]]) } });
    const body = gzipSync(JSON.stringify({ ...CHAT, model: "x" }));
    expect(await bodySeen(e1, gateway, body, { "content-encoding": "gzip" })).toBe(
      JSON.stringify({ ...CHAT, model: "m" }),
    );
    expect(e1.calls[0]?.headers["content-encoding"]).toBeUndefined();
  });
});

describe("the usage option", () => {
  const STREAMED = ODD_BODY.replace('"dup":1', '"stream": true, "dup":1');

  it("is the only change in a streamed body", async () => {
    const e1 = await startFake(sse(1));
    const gateway = await startGateway([e1]);
    const expected = STREAMED.replace("{", '{"stream_options":{"include_usage":true},');
    expect(await bodySeen(e1, gateway, STREAMED)).toBe(expected);
  });

  it("goes into a compressed body as well", async () => {
    const e1 = await startFake(sse(1));
    const gateway = await startGateway([e1]);
    const seen = await bodySeen(e1, gateway, gzipSync(STREAMED), { "content-encoding": "gzip" });
    expect(JSON.parse(seen)).toEqual({ ...JSON.parse(STREAMED), stream_options: { include_usage: true } });
    expect(e1.calls[0]?.headers["content-encoding"]).toBeUndefined();
  });

  it("comes together with an alias", async () => {
    const e1 = await startFake(sse(1));
    const gateway = await startGateway([e1], { pool: { aliases: new Map([["x", "m"]]) } });
    const seen = await bodySeen(e1, gateway, { ...CHAT, model: "x", stream: true });
    expect(JSON.parse(seen)).toEqual({ ...CHAT, stream: true, stream_options: { include_usage: true } });
  });
});

describe("the limit on bodies", () => {
  const LIMIT = 20_000;
  const bodyOf = (bytes: number): string => `{"model":"m","prompt":"${"a".repeat(bytes - 25)}"}`;

  it.each([
    { what: "just under it", bytes: LIMIT - 1, status: 200 },
    { what: "right at it", bytes: LIMIT, status: 200 },
    { what: "over it by a byte", bytes: LIMIT + 1, status: 413 },
  ])("answers $status to one $what", async ({ bytes, status }) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { limits: { bodyBytes: LIMIT } });
    const body = bodyOf(bytes);
    expect(body).toHaveLength(bytes);
    expect(await exchange(`${gateway.listenUrl}/v1/completions`, { body })).toMatchObject({ status });
    expect(e1.calls).toHaveLength(status === 200 ? 1 : 0);
    expect(await gateway.outcomes()).toEqual(status === 200 ? { ok: 1 } : { request_too_large: 1 });
  });

  it("stops a chunked body as soon as it is over", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { limits: { bodyBytes: LIMIT } });
    const client = send(`${gateway.listenUrl}/v1/completions`);
    client.request.write(bodyOf(LIMIT + 1));
    const answer = await client.answer();
    expect(answer).toMatchObject({ status: 413, headers: { connection: "close" }, isWhole: true });
    expect(JSON.parse(answer.text).error).toMatchObject({ code: "request_too_large" });
    expect(e1.calls).toHaveLength(0);
  });

  it("reaches a client that sends everything before it reads", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { limits: { bodyBytes: LIMIT } });
    const client = new RawClient(gateway.listenUrl);
    client.socket.pause();
    const body = bodyOf(30_000_000);
    const head = `POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
    await new Promise<void>((sent, failed) =>
      client.socket.write(head + body, (error) => (error ? failed(error) : sent())),
    );
    client.socket.resume();
    expect(await client.closes()).toMatch(/^HTTP\/1.1 413 [\s\S]*request_too_large/);
  });
});

describe("Expect: 100-continue", () => {
  const head = (length: number, path = PATH): string =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;
  const body = JSON.stringify(CHAT);

  it("is answered once the body is wanted, and never forwarded", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(head(body.length));
    expect(await client.receives(/\r\n\r\n$/)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    client.write(body);
    await client.receives(/HTTP\/1.1 200 OK/);
    expect((await e1.call(0)).headers.expect).toBeUndefined();
    client.socket.destroy();
  });

  it.each([
    { what: "a body over the limit", request: head(100_000_000), status: 413 },
    { what: "an unknown path", request: head(body.length, "/nowhere"), status: 404 },
  ])("is refused for $what before the body is sent", async ({ request, status }) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const received = await new RawClient(gateway.listenUrl).write(request).closes();
    expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(received).toMatch(/connection: close/i);
    expect(e1.calls).toHaveLength(0);
  });

  it("is the only expectation that can be met", async () => {
    const gateway = await startGateway([await startFake()]);
    const request = head(body.length).replace("100-continue", "200-ok");
    const received = await new RawClient(gateway.listenUrl).write(request).closes();
    expect(received).toMatch(/^HTTP\/1.1 417 /);
    expect(received).toMatch(/expectation_failed/);
  });
});

describe("credentials", () => {
  it("come from the configuration alone, whatever the body says", async () => {
    const e1 = await startFake();
    const elsewhere = await startFake();
    const gateway = await startGateway([], { pool: { endpoints: [testEndpoint("e1", e1.url)] } });
    const body = { ...CHAT, api_base: elsewhere.url, extra: { base_url: elsewhere.url, api_key: "k" } };
    expect(await bodySeen(e1, gateway, body)).toBe(JSON.stringify(body));
    expect(elsewhere.openSockets).toBe(0);
    await expectIdle(gateway);
  });
});
