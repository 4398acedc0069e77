import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { clientKey } from "../support/client-key.ts";
import { type FakeUpstream, ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, type ClientAnswer, exchange, RawClient, rawPost } from "../support/http-client.ts";
import { type TestOverrides, testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";
const UPLOAD = "/v1/audio/transcriptions";
const KEY = "key-of-a-client";
const BODY = JSON.stringify(CHAT);
const HEX = BODY.length.toString(16);
const LENGTH = `Content-Length: ${BODY.length}\r\n`;
const CHUNKED = "Transfer-Encoding: chunked\r\n";
const SMUGGLED = rawPost("/v1/embeddings", { model: "m", input: "smuggled" });

function post(lines: string, body = BODY, first = `POST ${PATH} HTTP/1.1`): Buffer {
  return Buffer.from(`${first}\r\nHost: x\r\n${lines}\r\n${body}`, "latin1");
}

const withTrailer = (trailer: string): Buffer => post(CHUNKED, `${HEX}\r\n${BODY}\r\n0\r\n${trailer}\r\n`);

async function start(overrides: TestOverrides = {}): Promise<{ e1: FakeUpstream; gateway: TestGateway }> {
  const e1 = await startFake(ok(), { models: ["m", "secret"] });
  return { e1, gateway: await startGateway([e1], overrides) };
}

function connectTo(gateway: TestGateway): RawClient {
  const client = new RawClient(gateway.listenUrl);
  onTestFinished(() => void client.socket.destroy());
  return client;
}

describe("what two servers could read differently", () => {
  it.each<[string, Buffer]>([
    ["a delete character in a value", post(`X-A: a\x7fb\r\n${LENGTH}`)],
    ["a delete character in the target", post(LENGTH, BODY, `POST ${PATH}?a\x7f HTTP/1.1`)],
    ["a byte beyond ASCII in the target", post(LENGTH, BODY, `POST ${PATH}?\xff HTTP/1.1`)],
    ["tabs in the first line", post(LENGTH, BODY, `POST\t${PATH}\tHTTP/1.1`)],
    ["a space behind the version", post(LENGTH, BODY, `POST ${PATH} HTTP/1.1 `)],
    ["a version in lower case", post(LENGTH, BODY, `POST ${PATH} http/1.1`)],
    ["a version that does not exist", post(LENGTH, BODY, `POST ${PATH} HTTP/1.2`)],
    ["an old version by number", post(LENGTH, BODY, `POST ${PATH} HTTP/0.9`)],
    ["a list of hosts", Buffer.from(post(LENGTH).toString().replace("Host: x", "Host: x, y"))],
    ["a host with a space in it", Buffer.from(post(LENGTH).toString().replace("Host: x", "Host: x y"))],
    ["two Authorization headers", post(`Authorization: Bearer a\r\nAuthorization: Bearer b\r\n${LENGTH}`)],
    ["one Authorization header twice", post(`authorization: Bearer a\r\nAUTHORIZATION: Bearer a\r\n${LENGTH}`)],
    ["a chunk extension that never ends", post(CHUNKED, `${HEX};${"a".repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n`)],
    ["a carriage return alone behind a chunk's size", post(CHUNKED, `${HEX}\r${BODY}\r\n0\r\n\r\n`)],
    ["a line feed alone behind the last chunk", post(CHUNKED, `${HEX}\r\n${BODY}\r\n0\n\r\n`)],
    ["chunked in its trailer", withTrailer(CHUNKED)],
    ["a trailer without a colon", withTrailer("Foo\r\n")],
    ["a trailer with a line feed alone", withTrailer("Foo: a\n")],
    ["a trailer larger than a head may be", withTrailer(`X: ${"a".repeat(40_000)}\r\n`)],
  ])("is refused: %s", async (_what, bytes) => {
    const { e1, gateway } = await start();
    const client = connectTo(gateway).write(Buffer.concat([bytes, Buffer.from(SMUGGLED)]));
    const received = await client.receives(/^HTTP\/1.1 400 [\s\S]*malformed_request[\s\S]*\}$/);
    expect(received.match(/HTTP\/1.1 /g)).toHaveLength(1);
    client.socket.destroy();
    expect(e1.calls).toHaveLength(0);
    expect(await gateway.outcomes()).toEqual({ malformed_request: 1 });
    await expectIdle(gateway);
  });

  it.each<[string, Buffer]>([
    ["lengths and codings with underscores", post(`Content_Length: 5\r\nTransfer_Encoding: chunked\r\n${LENGTH}`)],
    ["a host and an id with underscores", post(`x_request_id: 1\r\nX_Forwarded_For: 10.0.0.1\r\n${LENGTH}`)],
    ["a key with underscores", post(`X_Api_Key: k\r\n${LENGTH}`)],
    ["its length named as the connection's", post(`Connection: content-length, host\r\n${LENGTH}`)],
    ["a length with zeros before it", post(`Content-Length: 000${BODY.length}\r\n`)],
    ["chunked in capitals", post("Transfer-Encoding: CHUNKED\r\n", `0${HEX}\r\n${BODY}\r\n000\r\n\r\n`)],
    ["credentials in its trailer", withTrailer("Authorization: Bearer x\r\nX-Api-Key: y\r\n")],
    ["another path in its headers", post(`X-Original-URL: /metrics\r\nX-Rewrite-URL: /metrics\r\n${LENGTH}`)],
    ["another method in its headers", post(`X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: PUT\r\n${LENGTH}`)],
    ["another host in its target", post(LENGTH, BODY, `POST http://169.254.169.254:80${PATH} HTTP/1.1`)],
    ["names that objects have", post(`__proto__: a\r\n${LENGTH}`)],
  ])("is one clean request to its endpoint: %s", async (_what, bytes) => {
    const { e1, gateway } = await start();
    const client = connectTo(gateway).write(Buffer.concat([bytes, Buffer.from(SMUGGLED)]));
    await client.receives(/HTTP\/1.1 200 OK[\s\S]*HTTP\/1.1 200 OK/);
    expect(e1.calls.map(({ path }) => path)).toEqual([PATH, "/v1/embeddings"]);
    const { body, headers, rawHeaders, method } = await e1.call(0);
    expect([method, body.toString()]).toEqual(["POST", BODY]);
    expect(headers).toMatchObject({ host: new URL(e1.url).host, "content-length": String(BODY.length) });
    const names = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
    expect(names.filter((name) => name !== "x-request-id" && /_|^x-(?!forwarded-for|evenkeel)/.test(name))).toEqual([]);
    expect(names).not.toContain("authorization");
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("who has no key", () => {
  const keys = [clientKey("a", KEY)];

  it.each<[string, Buffer]>([
    ["a key in the trailer", withTrailer(`Authorization: Bearer ${KEY}\r\n`)],
    ["a name with an underscore", post(`x_api_key: ${KEY}\r\n${LENGTH}`)],
    ["a name with something behind it", post(`Authorization1: Bearer ${KEY}\r\n${LENGTH}`)],
    ["another hop's credentials", post(`Proxy-Authorization: Bearer ${KEY}\r\n${LENGTH}`)],
    ["two keys in one", post(`X-Api-Key: ${KEY}\r\nX-Api-Key: ${KEY}\r\n${LENGTH}`)],
    ["a cookie", post(`Cookie: authorization=Bearer ${KEY}; x-api-key=${KEY}\r\n${LENGTH}`)],
    ["a key in the target", post(LENGTH, BODY, `POST ${PATH}?api_key=${KEY} HTTP/1.1`)],
    ["a key as the target's user", post(LENGTH, BODY, `POST http://x:${KEY}@y${PATH} HTTP/1.1`)],
    ["HTTP/1.0", post(LENGTH, BODY, `POST ${PATH} HTTP/1.0`)],
    ["a doubled slash", post(LENGTH, BODY, `POST /${PATH} HTTP/1.1`)],
    ["a way round by dots", post(LENGTH, BODY, `POST /v1/models/../chat/completions HTTP/1.1`)],
    ["a way round by encoded dots", post(LENGTH, BODY, `POST /v1/%2e%2e${PATH} HTTP/1.1`)],
    ["a path parameter", post(LENGTH, BODY, `POST ${PATH};a=b HTTP/1.1`)],
    ["the whole server", post("", "", "OPTIONS * HTTP/1.1")],
    ["a path of the admin listener", post("", "", "GET /metrics HTTP/1.1")],
  ])("is told so, and nothing else, with %s", async (_what, bytes) => {
    const { e1, gateway } = await start({ keys });
    const received = await connectTo(gateway).write(bytes).closes();
    expect(received).toMatch(/^HTTP\/1.1 401 [\s\S]*invalid_key/);
    expect(received.match(/HTTP\/1.1 /g)).toHaveLength(1);
    expect(received).not.toContain(KEY);
    expect(e1.calls).toHaveLength(0);
  });

  it("does not get in by a second Authorization header, whichever is the right one", async () => {
    const { e1, gateway } = await start({ keys });
    const [right, wrong] = [`Authorization: Bearer ${KEY}\r\n`, "Authorization: Bearer x\r\n"];
    for (const lines of [right + wrong, wrong + right]) {
      expect(
        await connectTo(gateway)
          .write(post(lines + LENGTH))
          .closes(),
      ).toMatch(/^HTTP\/1.1 400 /);
    }
    expect(e1.calls).toHaveLength(0);
  });
});

describe("a key for one model", () => {
  const part = (disposition: string, value: string): string =>
    `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`;
  const form = (...parts: string[]): Buffer => Buffer.from(`${parts.join("")}--b--\r\n`);
  const FORM = { "content-type": "multipart/form-data; boundary=b" };
  const JSON_TYPE = { "content-type": "application/json" };

  async function ask(path: string, body: Buffer | string, headers: Record<string, string>): Promise<ClientAnswer> {
    const e1 = await startFake(ok(), { models: ["m", "secret"] });
    const pool = { endpoints: [testEndpoint("e1", e1.url)] };
    const keys = [clientKey("a", KEY, { models: ["m"] })];
    const gateway = await startGateway([], { keys, pool, passthrough: [UPLOAD] });
    const all = { authorization: `Bearer ${KEY}`, ...headers };
    const answer = await exchange(`${gateway.listenUrl}${path}`, { body, headers: all });
    expect(e1.calls).toHaveLength(answer.status === 200 ? 1 : 0);
    return answer;
  }

  it.each<[string, Buffer | string, Record<string, string>]>([
    ["the name twice", '{"model":"m","model":"secret"}', JSON_TYPE],
    ["the name with an escape", '{"model":"m","mod\\u0065l":"secret"}', JSON_TYPE],
    ["the name in another case behind it", '{"model":"m","Model":"secret"}', JSON_TYPE],
    ["the name in another case before it", '{"MODEL":"secret","model":"m"}', JSON_TYPE],
    ["a name with a space behind it", '{"model":"secret "}', JSON_TYPE],
    ["a list", '{"model":["m"]}', JSON_TYPE],
    ["a coding that cannot be looked into", gzipSync('{"model":"secret"}'), { ...JSON_TYPE, "content-encoding": "x" }],
    ["two codings", gzipSync('{"model":"secret"}'), { ...JSON_TYPE, "content-encoding": "gzip, identity" }],
  ])("is good for no other by %s", async (_what, body, headers) => {
    for (const path of [PATH, UPLOAD]) expect(await ask(path, body, headers)).toMatchObject({ status: 403 });
  });

  it.each<[string, Buffer, Record<string, string>]>([
    ["a second field", form(part('name="model"', "m"), part('name="model"', "secret")), FORM],
    ["a field named in the extended form", form(part('name="model"', "m"), part("name*=utf-8''model", "secret")), FORM],
    ["a field with a space in its head", form(part('name="model"', "m"), part('name ="model"', "secret")), FORM],
    [
      "a second boundary",
      Buffer.from(
        `${form(part('name="model"', "m"))}--c\r\nContent-Disposition: form-data; name="model"\r\n\r\nsecret`,
      ),
      { "content-type": 'multipart/form-data; x="; boundary=b"; boundary=c' },
    ],
    ["another type of body", Buffer.from("model=secret"), { "content-type": "application/x-www-form-urlencoded" }],
  ])("is good for no other in a form by %s", async (_what, body, headers) => {
    expect(await ask(UPLOAD, body, headers)).toMatchObject({ status: 403 });
  });

  it("is good for that one, in JSON and in a form", async () => {
    expect(await ask(PATH, BODY, JSON_TYPE)).toMatchObject({ status: 200 });
    expect(
      await ask(UPLOAD, form(part('name="model"', "m"), part('name="file"; filename="model"', "x")), FORM),
    ).toMatchObject({ status: 200 });
  });
});

describe("a path that is passed through", () => {
  it.each([
    `/${UPLOAD}`,
    `${UPLOAD}/`,
    `${UPLOAD}/..`,
    `${UPLOAD}/../../../metrics`,
    `${UPLOAD}/%2e%2e/%2e%2e/%2e%2e/metrics`,
    `${UPLOAD}%2f..%2f..%2f..%2fmetrics`,
    `${UPLOAD};/../../../metrics`,
    `${UPLOAD}%00`,
    `${UPLOAD}\\..\\..\\metrics`,
    UPLOAD.toUpperCase(),
    UPLOAD.replace("a", "%61"),
    `http://e1/metrics?${UPLOAD}`,
    `http:/${UPLOAD}`,
    `//e1${UPLOAD}`,
  ])("is that one alone, not %s", async (target) => {
    const { e1, gateway } = await start({ passthrough: [UPLOAD] });
    const client = connectTo(gateway).write(post(`Connection: close\r\n${LENGTH}`, BODY, `POST ${target} HTTP/1.1`));
    expect(await client.closes()).toMatch(/^HTTP\/1.1 40[04] /);
    expect(e1.calls).toHaveLength(0);
  });

  it("goes to its endpoint as it is, its query too", async () => {
    const { e1, gateway } = await start({ passthrough: [UPLOAD] });
    const query = "?a=/../../metrics&b=%2e%2e";
    const client = connectTo(gateway).write(post(LENGTH, BODY, `POST ${UPLOAD}${query} HTTP/1.1`));
    await client.receives(/^HTTP\/1.1 200 /);
    expect((await e1.call(0)).path).toBe(UPLOAD + query);
  });
});
