import { Agent } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { Secret } from "../../src/config/index.ts";
import type { ClientKey } from "../../src/runtime/index.ts";
import { clientKey, keyHash } from "../support/client-key.ts";
import { code, type FakeUpstream, hold, ok, sse, startFake } from "../support/fake-upstream.ts";
import { CHAT, type ClientAnswer, exchange, RawClient, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";
const KEY = "ek-right";

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

function ask(gateway: TestGateway, key: string, body: unknown = CHAT, path = PATH): Promise<ClientAnswer> {
  return exchange(`${gateway.listenUrl}${path}`, { body, headers: bearer(key) });
}

async function guarded(settings: Partial<ClientKey> = {}, e1?: FakeUpstream): Promise<TestGateway> {
  return startGateway([e1 ?? (await startFake())], { keys: [clientKey("team-a", KEY, settings)] });
}

const errorOf = (answer: ClientAnswer): unknown => JSON.parse(answer.text).error;

describe("where keys are configured, a request", () => {
  it.each([
    { what: "as bearer token", headers: bearer(KEY) },
    { what: "as x-api-key", headers: { "x-api-key": KEY } },
  ])("with one of them $what is served, and the endpoint sees neither it nor its header", async ({ headers }) => {
    const e1 = await startFake();
    const gateway = await guarded({}, e1);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT, headers })).toMatchObject({ status: 200 });
    const { headers: seen } = await e1.call(0);
    expect(Object.keys(seen)).not.toEqual(expect.arrayContaining(["authorization", "x-api-key"]));
    expect(JSON.stringify(seen)).not.toContain(KEY);
  });

  it("is served with the endpoint's own key, and no other", async () => {
    const e1 = await startFake();
    const endpoints = [testEndpoint("e1", e1.url, { apiKey: new Secret("endpoint-key") })];
    const gateway = await startGateway([], { keys: [clientKey("a", KEY)], pool: { endpoints } });
    const headers = { ...bearer(KEY), "x-api-key": "other", connection: "keep-alive, authorization, x-api-key" };
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT, headers })).toMatchObject({ status: 200 });
    const { headers: seen } = await e1.call(0);
    expect(seen.authorization).toBe("Bearer endpoint-key");
    expect(seen).not.toHaveProperty("x-api-key");
  });

  it.each([
    { path: PATH, key: "wrong" },
    { path: PATH, key: "" },
    { path: PATH, key: KEY.slice(0, -1) },
    { path: PATH, key: keyHash("", KEY).sha256.toString("hex") },
    { path: "/nowhere", key: "wrong" },
  ])("with none of them ($key) to $path is refused", async ({ path, key }) => {
    const e1 = await startFake();
    const gateway = await guarded({}, e1);
    const answer = await ask(gateway, key, CHAT, path);
    expect(answer).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer", connection: "close" } });
    expect(answer.headers["x-evenkeel-reason"]).toBe("invalid_key");
    expect(errorOf(answer)).toMatchObject({ type: "authentication_error", code: "invalid_key" });
    expect(await gateway.outcomes()).toEqual({ invalid_key: 1 });
    expect(e1.calls).toHaveLength(0);
  });

  it("is refused in the dialect of its route", async () => {
    const gateway = await guarded();
    const answer = await exchange(`${gateway.listenUrl}/v1/messages`, { body: CHAT });
    expect(JSON.parse(answer.text)).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    expect(answer.headers["x-evenkeel-reason"]).toBe("invalid_key");
  });

  it("is refused before its body is read, and its connection closed", async () => {
    const gateway = await guarded();
    const client = new RawClient(gateway.listenUrl);
    client.write(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n${"x".repeat(1_000)}`);
    await client.receives(/^HTTP\/1.1 401 [\s\S]*invalid_key/);
    client.write(Buffer.alloc(4_999_000, "x"));
    client.write(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: 2\r\n\r\n{}`);
    expect((await client.closes()).match(/^HTTP/gm)).toHaveLength(1);
  });

  it("is refused without inviting its body", async () => {
    const gateway = await guarded();
    const head = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n`;
    const client = new RawClient(gateway.listenUrl).write(`${head}\r\n`);
    expect(await client.closes()).toMatch(/^HTTP\/1.1 401 /);
    const known = new RawClient(gateway.listenUrl).write(`${head}Authorization: Bearer ${KEY}\r\n\r\n`);
    expect(await known.receives(/\r\n\r\n/)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    known.socket.destroy();
  });

  it("is known on each request anew, also on one connection", async () => {
    const gateway = await guarded();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const statuses: number[] = [];
    for (const key of [KEY, "wrong", KEY]) {
      statuses.push(
        (await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT, agent, headers: bearer(key) })).status,
      );
    }
    expect(statuses).toEqual([200, 401, 200]);
  });
});

describe("where no keys are configured", () => {
  it("the client's credentials are the endpoint's affair", async () => {
    const e1 = await startFake(code(401, { error: { message: "no" } }));
    const gateway = await startGateway([e1]);
    expect(await ask(gateway, "any")).toMatchObject({ status: 401 });
    expect((await e1.call(0)).headers.authorization).toBe("Bearer any");
  });
});

describe("a key for some models", () => {
  it("may use those, aliases by their own name, and no other", async () => {
    const e1 = await startFake(ok(), { models: ["m", "secret"] });
    const keys = [clientKey("a", KEY, { models: ["m", "fast"] })];
    const gateway = await startGateway([e1], { keys, pool: { aliases: new Map([["fast", "secret"]]) } });
    for (const model of ["m", "fast"])
      expect(await ask(gateway, KEY, { ...CHAT, model })).toMatchObject({ status: 200 });
    for (const model of ["secret", "M", "unknown", undefined]) {
      const answer = await ask(gateway, KEY, { ...CHAT, model });
      expect(answer.status).toBe(403);
      expect(errorOf(answer)).toMatchObject({ type: "permission_error", code: "forbidden_model" });
    }
    expect(e1.calls).toHaveLength(2);
    expect(await gateway.outcomes()).toEqual({ ok: 2, forbidden_model: 4 });
  });

  it("sees no others", async () => {
    const e1 = await startFake(ok(), { models: ["m", "secret"] });
    const keys = [clientKey("a", KEY, { models: ["m", "gone"] }), clientKey("b", "all")];
    const gateway = await startGateway([e1], { keys });
    const get = async (path: string, key: string): Promise<ClientAnswer> =>
      exchange(`${gateway.listenUrl}${path}`, { method: "GET", headers: bearer(key) });
    const listed = async (key: string): Promise<unknown> =>
      JSON.parse((await get("/v1/models", key)).text).data.map(({ id }: { readonly id: string }) => id);
    expect([await listed(KEY), await listed("all")]).toEqual([["m"], ["m", "secret"]]);
    const hidden = await get("/v1/models/secret", KEY);
    expect(hidden.status).toBe(404);
    expect(await get("/v1/models/secret", "all")).toMatchObject({ status: 200 });
    const gone = await ask(gateway, KEY, { ...CHAT, model: "gone" });
    for (const { text } of [hidden, gone]) expect(text.replace('"secret\\"', "")).not.toMatch(/Known models:.*secret/);
    expect(gone.status).toBe(404);
    expect(await get("/v1/models", "wrong")).toMatchObject({ status: 401 });
  });
});

describe("the limit on a key's requests", () => {
  it("refuses what is beyond it, before the body is read, and says when to come back", async () => {
    const e1 = await startFake();
    const gateway = await guarded({ requestsPerMinute: 2 }, e1);
    const first = await ask(gateway, KEY);
    expect(first.headers).toMatchObject({
      "x-ratelimit-limit-requests": "2",
      "x-ratelimit-remaining-requests": "1",
      "x-ratelimit-reset-requests": "30s",
    });
    await ask(gateway, KEY);
    const head = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: 10\r\n`;
    const client = new RawClient(gateway.listenUrl).write(`${head}Expect: 100-continue\r\n\r\n`);
    expect(await client.closes()).toMatch(/^HTTP\/1.1 429 /);
    const answer = await ask(gateway, KEY);
    expect(answer).toMatchObject({ status: 429, headers: { "x-ratelimit-remaining-requests": "0" } });
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(29);
    expect(answer.headers["x-should-retry"]).toBeUndefined();
    expect(errorOf(answer)).toMatchObject({ type: "rate_limit_error", code: "rate_limited" });
    expect(e1.calls).toHaveLength(2);
    expect(await gateway.outcomes()).toEqual({ ok: 2, rate_limited: 2 });
  });
});

describe("the limit on a key's tokens", () => {
  const LIMIT = 1_000;
  const remaining = (answer: ClientAnswer): number => Number(answer.headers["x-ratelimit-remaining-tokens"]);
  const short = { ...CHAT, max_tokens: 50 };
  const usage = { prompt_tokens: 100, completion_tokens: 200, total_tokens: 300 };

  it("takes what a request may use, and afterwards what it did use", async () => {
    const e1 = await startFake(ok({ choices: [], usage }));
    const gateway = await guarded({ tokensPerMinute: LIMIT }, e1);
    const first = await ask(gateway, KEY, short);
    expect(remaining(first)).toBeGreaterThan(LIMIT - 100);
    expect(remaining(first)).toBeLessThan(LIMIT - 50);
    const second = await ask(gateway, KEY, short);
    expect(remaining(second)).toBeGreaterThan(LIMIT - 400);
    expect(remaining(second)).toBeLessThan(LIMIT - 340);
  });

  it("refuses a request that has no room in it, and charges it nothing", async () => {
    const e1 = await startFake(ok({ choices: [], usage: { ...usage, completion_tokens: 850 } }));
    const gateway = await guarded({ tokensPerMinute: LIMIT }, e1);
    await ask(gateway, KEY, short);
    for (let i = 0; i < 3; i++) {
      const answer = await ask(gateway, KEY, { ...CHAT, max_tokens: 900 });
      expect(answer.status).toBe(429);
      expect(errorOf(answer)).toMatchObject({ code: "rate_limited", message: expect.stringContaining("tokens") });
      expect(Number(answer.headers["retry-after"])).toBeGreaterThan(10);
    }
    expect(e1.calls).toHaveLength(1);
    await expectIdle(gateway);
  });

  it("gives back what a request did not use that no endpoint served", async () => {
    const e1 = await startFake(code(400, { error: { message: "no" } }));
    const gateway = await guarded({ tokensPerMinute: LIMIT }, e1);
    for (let i = 0; i < 20; i++) expect((await ask(gateway, KEY, { ...CHAT, max_tokens: 900 })).status).toBe(400);
    expect(remaining(await ask(gateway, KEY, short))).toBeGreaterThan(LIMIT - 100);
  });

  it("counts what a stream sent", async () => {
    const gateway = await guarded({ tokensPerMinute: LIMIT }, await startFake(sse(400)));
    await ask(gateway, KEY, STREAMED_CHAT);
    expect(remaining(await ask(gateway, KEY, short))).toBeLessThan(LIMIT - 300);
  });

  it("counts the prompt of a client that left when an endpoint was at it", async () => {
    const e1 = await startFake(hold);
    const gateway = await guarded({ tokensPerMinute: LIMIT }, e1);
    const long = { ...short, messages: [{ role: "user", content: "many words ".repeat(100) }] };
    const client = send(`${gateway.listenUrl}${PATH}`, { body: long, headers: bearer(KEY) });
    await e1.call(0);
    client.abort();
    await expectIdle(gateway);
    e1.behave(ok());
    expect(remaining(await ask(gateway, KEY, short))).toBeLessThan(LIMIT - 250);
  });
});
