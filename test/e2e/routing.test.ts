import { describe, expect, it } from "vitest";
import { DEFAULT_HOLDING_LIMITS } from "../../src/core/index.ts";
import { code, hold, ok, REFUSING_URL, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint, testPool } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const REQUESTS: readonly { readonly path: string; readonly body: object }[] = [
  { path: "/v1/chat/completions", body: CHAT },
  { path: "/v1/completions", body: { model: "m", prompt: "hi" } },
  { path: "/v1/embeddings", body: { model: "m", input: ["hi"] } },
  { path: "/v1/responses", body: { model: "m", input: "hi" } },
  { path: "/v1/messages", body: { ...CHAT, max_tokens: 8 } },
  { path: "/v1/rerank", body: { model: "m", query: "q", documents: ["a", "b"] } },
  { path: "/v1/score", body: { model: "m", text_1: "a", text_2: "b" } },
  { path: "/tokenize", body: { model: "m", prompt: "hi" } },
];

describe("balanced routes", () => {
  it.each(REQUESTS)("passes $path and its answer through", async ({ path, body }) => {
    const e1 = await startFake(ok('{"odd":  "spacing"}', { "x-engine": "yes" }));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${path}?api-version=1`, { body });
    expect(answer).toMatchObject({ status: 200, text: '{"odd":  "spacing"}', isWhole: true });
    expect(answer.headers).toMatchObject({
      "x-engine": "yes",
      "x-evenkeel-endpoint": "e1",
      "x-evenkeel-policy": "round_robin",
    });
    expect(e1.calls).toHaveLength(1);
    expect(e1.calls[0]).toMatchObject({ method: "POST", path: `${path}?api-version=1` });
    expect(e1.calls[0]?.body.toString()).toBe(JSON.stringify(body));
    await expectIdle(gateway);
  });

  it("puts the path behind the endpoint's own", async () => {
    const e1 = await startFake();
    const gateway = await runGateway(testConfig([`${e1.url}/engines/a`]));
    await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT });
    expect((await e1.call(0)).path).toBe("/engines/a/v1/chat/completions");
  });

  it("spreads requests over the endpoints", async () => {
    const fakes = [await startFake(), await startFake()];
    const gateway = await startGateway(fakes);
    const answers = [];
    for (let i = 0; i < 6; i++)
      answers.push(await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT }));
    expect(answers.map(({ headers }) => headers["x-evenkeel-endpoint"]).sort()).toEqual([
      "e1",
      "e1",
      "e1",
      "e2",
      "e2",
      "e2",
    ]);
    expect(fakes.map(({ calls }) => calls.length)).toEqual([3, 3]);
  });

  it("passes an engine's refusal on as it is, once and without trying elsewhere", async () => {
    const refusal = code(400, '{"error":{"message":"too long","code":400}}');
    const [e1, e2] = [await startFake(refusal), await startFake(refusal)];
    const gateway = await startGateway([e1, e2]);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT })),
    );
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 400, text: '{"error":{"message":"too long","code":400}}' });
    }
    expect(e1.calls.length + e2.calls.length).toBe(10);
    e1.behave(ok());
    e2.behave(ok());
    expect(await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT })).toMatchObject({ status: 200 });
    expect(await gateway.outcomes()).toEqual({ upstream_4xx: 10, ok: 1 });
    await expectIdle(gateway);
  });

  it("passes an engine's 5xx on and counts it as one", async () => {
    const e1 = await startFake(code(500, { error: "boom" }));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 500, text: '{"error":"boom"}' });
    expect(await gateway.outcomes()).toEqual({ upstream_5xx: 1 });
    await expectIdle(gateway);
  });
});

describe("the balancer's own errors", () => {
  it.each([
    { what: "an unknown path", path: "/v1/unknown", status: 404, code: "route_not_found" },
    { what: "a path of the engine's administration", path: "/flush_cache", status: 404, code: "route_not_found" },
    { what: "the metrics on the clients' port", path: "/metrics", status: 404, code: "route_not_found" },
    {
      what: "a path that only begins like a route",
      path: "/v1/chat/completions/x",
      status: 404,
      code: "route_not_found",
    },
  ])("answers $status to $what", async ({ path, status, code: errorCode }) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${path}`, { body: CHAT });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toEqual({
      error: { message: expect.any(String), type: "invalid_request_error", param: null, code: errorCode },
    });
    expect(answer.headers["x-should-retry"]).toBe("false");
    expect(answer.headers["x-request-id"]).toMatch(/\S/);
    expect(e1.calls).toHaveLength(0);
    expect(await gateway.outcomes()).toEqual({ [errorCode]: 1 });
  });

  it("answers 405 with the methods that a route takes", async () => {
    const gateway = await startGateway([await startFake()]);
    for (const method of ["GET", "PUT", "OPTIONS", "HEAD"]) {
      const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { method });
      expect(answer).toMatchObject({ status: 405, headers: { allow: "POST" } });
    }
    const answer = await exchange(`${gateway.listenUrl}/v1/models`, { body: {} });
    expect(answer).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
  });

  it.each([
    { what: "cut JSON", body: '{"model":"m"', message: /ends too early at line 1, column 13/ },
    { what: "an array", body: "[]", message: /must be a JSON object, not an array/ },
    { what: "nothing", body: "", message: /body is empty/ },
  ])("answers 400 to $what as a body", async ({ body, message }) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text).error).toMatchObject({
      message: expect.stringMatching(message),
      type: "invalid_request_error",
      code: "invalid_json",
    });
    expect(e1.calls).toHaveLength(0);
    await expectIdle(gateway);
  });

  it("answers 404 to an unknown model and names those it knows", async () => {
    const e1 = await startFake(ok(), { models: ["b", "a"] });
    const gateway = await startGateway([e1], { pool: { aliases: new Map([["fast", "a"]]) } });
    await until(() => gateway.runtime.directory.names.length > 1);
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: { ...CHAT, model: "gpt-9" } });
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.text).error).toMatchObject({
      message: 'The model "gpt-9" is not served here. Known models: a, b, fast.',
      code: "model_not_found",
    });
    expect(e1.calls).toHaveLength(0);
  });

  it("speaks Anthropic's shape on /v1/messages", async () => {
    const gateway = await startGateway([await startFake()], { pool: { models: ["m"] } });
    const answer = await exchange(`${gateway.listenUrl}/v1/messages`, { body: { ...CHAT, model: "x" } });
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.text)).toEqual({
      type: "error",
      error: { type: "not_found_error", message: expect.stringContaining('"x"') },
      request_id: answer.headers["request-id"],
    });
    expect(answer.headers["request-id"]).toBe(answer.headers["x-request-id"]);
  });

  it("answers 504 when no byte came in time, and frees the endpoint", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], { timeouts: { firstByteMs: 100 } });
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: STREAMED_CHAT });
    expect(answer.status).toBe(504);
    expect(JSON.parse(answer.text).error).toMatchObject({ type: "server_error", code: "upstream_timeout" });
    expect(answer.headers["x-evenkeel-endpoint"]).toBe("e1");
    const call = await e1.call(0);
    await until(() => call.isAborted);
    expect(e1.calls).toHaveLength(1);
    await expectIdle(gateway);
  });

  it("answers 503 when no endpoint takes traffic", async () => {
    const e1 = await startFake();
    const endpoints = [testEndpoint("e1", e1.url, { weight: 0 })];
    const gateway = await runGateway(testConfig([e1.url], { pool: { endpoints } }));
    await until(() => gateway.runtime.directory.names.length > 0);
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT });
    expect(answer.status).toBe(503);
    expect(JSON.parse(answer.text).error).toMatchObject({ code: "no_available_endpoint" });
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(e1.calls).toHaveLength(0);
  });

  it("answers 429 with Retry-After when the fleet is saturated and nobody is held, and serves again once it is not", async () => {
    const e1 = await startFake(hold);
    const policy = { name: "token_aware", options: { horizonSeconds: 0.1 } };
    const endpoints = [testEndpoint("e1", e1.url, { tokensPerSecond: 10 })];
    const holding = { ...DEFAULT_HOLDING_LIMITS, maxRequests: 0 };
    const gateway = await startGateway([], { pool: { policy, endpoints, holding } });
    const first = send(`${gateway.listenUrl}/v1/chat/completions`, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    const refused = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT });
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.text).error).toMatchObject({ type: "server_error", code: "overloaded" });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(60);
    ok()(call);
    expect(await first.answer()).toMatchObject({ status: 200 });
    e1.behave(ok());
    expect(await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT })).toMatchObject({ status: 200 });
    expect(await gateway.outcomes()).toEqual({ ok: 2, overloaded: 1 });
  });
});

describe("several pools", () => {
  it("sends each model to its pool, by its own name or an alias", async () => {
    const [small, large] = [await startFake(), await startFake()];
    const pools = [
      testPool([small.url], { name: "small", models: ["s"], aliases: new Map([["gpt-4o-mini", "s"]]) }),
      testPool([large.url], { name: "large", models: ["l", "org/l-70b"] }),
    ];
    const gateway = await startGateway([], { pools });
    for (const model of ["s", "gpt-4o-mini", "l", "org/l-70b"]) {
      await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: { ...CHAT, model } });
    }
    const models = ({ calls }: typeof small) => calls.map(({ body }) => JSON.parse(body.toString()).model);
    expect(models(small)).toEqual(["s", "s"]);
    expect(models(large)).toEqual(["l", "org/l-70b"]);
  });

  it("needs a model's name to tell pools apart, and with one pool needs none", async () => {
    const e1 = await startFake();
    const two = [testPool([e1.url], { name: "a", models: ["a"] }), testPool([e1.url], { name: "b", models: ["b"] })];
    const gateway = await startGateway([], { pools: two });
    const { model: _, ...nameless } = { model: "", ...CHAT };
    const refused = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: nameless });
    expect(refused.status).toBe(404);
    expect(JSON.parse(refused.text).error.message).toBe("The request names no model. Known models: a, b.");

    const single = await startGateway([e1]);
    await exchange(`${single.listenUrl}/v1/chat/completions`, { body: nameless });
    expect((await e1.call(0)).body.toString()).toBe(JSON.stringify(nameless));
  });
});

describe("endpoints that are not known yet", () => {
  it("are tried before any probe has answered", async () => {
    const e1 = await startFake();
    e1.onProbe = () => {};
    const gateway = await runGateway(testConfig([e1.url]));
    expect(gateway.runtime.isReady).toBe(false);
    expect(await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT })).toMatchObject({ status: 200 });
    expect(gateway.runtime.isReady).toBe(true);
  });

  it("do not keep the balancer from starting, and it recovers by itself", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT });
    expect([502, 503]).toContain(answer.status);
    expect((await fetch(`${gateway.admin}/readyz`)).status).toBe(503);
    expect((await fetch(`${gateway.admin}/healthz`)).status).toBe(200);
  });
});
