import { describe, expect, it } from "vitest";
import { callAdmin } from "../support/admin-client.ts";
import {
  code,
  DONE_EVENT,
  finAt,
  headThenHold,
  hold,
  ok,
  REFUSING_URL,
  rstAt,
  sse,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

async function adminJson(gateway: TestGateway, path: string, body?: unknown): Promise<{ status: number; json: never }> {
  const { status, json } = await callAdmin(gateway, body === undefined ? "GET" : "POST", path, body);
  return { status, json: json as never };
}

describe("/healthz and /readyz", () => {
  it("tell that the process lives, and whether it can serve", async () => {
    const e1 = await startFake();
    const { port } = new URL(e1.url);
    await e1.kill();
    const gateway = await runGateway(testConfig([e1.url, REFUSING_URL]));
    expect(await adminJson(gateway, "/healthz")).toMatchObject({ status: 200 });
    expect(await adminJson(gateway, "/readyz")).toMatchObject({
      status: 503,
      json: { status: "not ready", pools: { default: false } },
    });
    await startFake(ok(), { port: Number(port) });
    await until(async () => (await adminJson(gateway, "/readyz")).status === 200);
    await until(async () => {
      const { status } = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
      return status === 200;
    });
  });
});

describe("/admin/endpoints", () => {
  it("shows the work in flight of each endpoint", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const work = async (): Promise<object> => {
      const { json } = await adminJson(gateway, "/admin/endpoints");
      return (json as { pools: { endpoints: { work: object }[] }[] }).pools[0]?.endpoints[0]?.work ?? {};
    };
    const zero = {
      requests: 0,
      waitingRequests: 0,
      runningRequests: 0,
      heldRequests: 0,
      waitingPrefillTokens: 0,
      expectedOutputTokens: 0,
      contextTokens: 0,
    };
    expect(await work()).toEqual(zero);
    const body = { ...STREAMED_CHAT, messages: [{ role: "user", content: "x".repeat(400) }], max_tokens: 50 };
    const client = send(`${gateway.listenUrl}${PATH}`, { body });
    const call = await e1.call(0);
    expect(await work()).toMatchObject({
      requests: 1,
      waitingRequests: 1,
      runningRequests: 0,
      expectedOutputTokens: 50,
      contextTokens: 0,
    });
    const { waitingPrefillTokens } = (await work()) as { waitingPrefillTokens: number };
    expect(waitingPrefillTokens).toBeGreaterThanOrEqual(100);
    call.response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));
    expect(await work()).toMatchObject({
      waitingRequests: 0,
      runningRequests: 1,
      waitingPrefillTokens: 0,
      contextTokens: waitingPrefillTokens + 1,
      expectedOutputTokens: 49,
    });
    call.response.end(DONE_EVENT);
    await client.answer();
    expect(await work()).toEqual(zero);
  });

  it("shows what is known of each endpoint, and no key", async () => {
    const e1 = await startFake(ok(), { models: ["a"] });
    const gateway = await startGateway([], { pool: { endpoints: [testEndpoint("e1", e1.url, { weight: 3 })] } });
    const { json } = await adminJson(gateway, "/admin/endpoints");
    await until(() => gateway.runtime.directory.names.length === 1);
    expect(json).toMatchObject({
      pools: [
        {
          name: "default",
          policy: "round_robin",
          endpoints: [{ id: "e1", url: e1.url, availability: "ready", weight: 3, isDraining: false }],
        },
      ],
    });
  });
});

describe("/admin/explain", () => {
  it("says what would be chosen and why, candidate by candidate, and changes nothing", async () => {
    const [e1, e2] = [await startFake(hold), await startFake(hold)];
    const gateway = await startGateway([e1, e2], { pool: { policy: { name: "least_connections", options: {} } } });
    const held = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await until(() => e1.calls.length + e2.calls.length === 1);
    const idle = e1.calls.length === 0 ? "e1" : "e2";
    const before = await adminJson(gateway, "/admin/endpoints");
    for (let i = 0; i < 3; i++) {
      const { status, json } = await adminJson(gateway, "/admin/explain", { path: PATH, body: CHAT });
      expect(status).toBe(200);
      expect(json).toMatchObject({
        pool: "default",
        policy: "least_connections",
        chosen: idle,
        wouldHold: false,
        considered: expect.arrayContaining([
          expect.objectContaining({ endpoint: "e1" }),
          expect.objectContaining({ endpoint: "e2" }),
        ]),
        excluded: [],
      });
    }
    expect(await adminJson(gateway, "/admin/endpoints")).toEqual(before);
    expect(e1.calls.length + e2.calls.length).toBe(1);
    held.abort();
    await expectIdle(gateway);
  });

  it.each([
    { what: "no JSON", body: "{", message: /expected JSON/ },
    { what: "no body", body: {}, message: /body: expected/ },
    { what: "an unknown path", body: { path: "/x", body: {} }, message: /not a balanced path/ },
    { what: "an unknown model", body: { body: { model: "nope" } }, message: /"nope" is not served; known: m/ },
  ])("says what is wrong with a question of $what", async ({ body, message }) => {
    const gateway = await startGateway([await startFake()]);
    await until(() => gateway.runtime.directory.names.length === 1);
    const { status, json } = await callAdmin(gateway, "POST", "/admin/explain", body);
    expect(status).toBe(400);
    expect((json as { error: string }).error).toMatch(message);
  });
});

describe("/metrics", () => {
  it("counts every request in exactly one outcome", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { timeouts: { firstByteMs: 100 }, limits: { bodyBytes: 10_000 } });
    const url = `${gateway.listenUrl}${PATH}`;
    e1.next(ok(), sse(3), rstAt(2), finAt(1), code(404, "{}"), code(502, "{}"), hold);
    await exchange(url, { body: CHAT });
    for (let i = 0; i < 6; i++) await exchange(url, { body: STREAMED_CHAT });
    await exchange(url, { body: "{" });
    await exchange(url, { body: "x".repeat(20_000) });
    await exchange(url, { method: "PUT" });
    await exchange(`${gateway.listenUrl}/nowhere`, { body: CHAT });
    await exchange(`${gateway.listenUrl}/v1/models`, { method: "GET" });
    await exchange(url, { body: { ...CHAT, model: "nope" } });
    expect(await gateway.outcomes()).toEqual({
      ok: 3,
      truncated: 2,
      upstream_4xx: 1,
      upstream_5xx: 1,
      upstream_timeout: 1,
      invalid_json: 1,
      request_too_large: 1,
      method_not_allowed: 1,
      route_not_found: 1,
      model_not_found: 1,
    });
    // Streams with a first token, and no others.
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_count")).toBe(3);
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_sum")).toBeGreaterThan(0);
    expect(await gateway.metric("evenkeel_request_duration_seconds_count")).toBe(2);
    await expectIdle(gateway);
  });

  it("makes no series for what clients make up", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1], { passthrough: ["/x"] });
    const url = gateway.listenUrl;
    const random = async (i: number): Promise<void> => {
      const headers = { "x-session-id": `s${i}`, "x-request-id": `r${i}` };
      await exchange(`${url}${PATH}`, { body: { ...CHAT, model: `model"${i}\n` }, headers });
      await exchange(`${url}${PATH}?q=${i}`, { body: CHAT, headers });
      await exchange(`${url}/path/${i}`, { method: i % 2 === 0 ? "PURGE" : "GET" });
      await exchange(`${url}/v1/models/${i}`, { method: "GET" });
    };
    const series = async (): Promise<number> => {
      const text = await (await fetch(`${gateway.admin}/metrics`)).text();
      return text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;
    };
    await random(0);
    const before = await series();
    for (let i = 1; i <= 20; i++) await random(i);
    expect(await series()).toBe(before);
    expect(await gateway.outcomes()).toMatchObject({ model_not_found: 42, ok: 21, route_not_found: 21 });
  });

  it("shows the ledger as it is now", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await e1.call(0);
    expect(await gateway.metric("evenkeel_requests_in_flight")).toBe(1);
    expect(await gateway.metric("evenkeel_endpoint_waiting_requests", { endpoint: "e1" })).toBe(1);
    expect(await gateway.metric("evenkeel_endpoint_up", { endpoint: "e1" })).toBe(1);
    client.abort();
    await expectIdle(gateway);
    expect(await gateway.metric("evenkeel_endpoint_waiting_requests", { endpoint: "e1" })).toBe(0);
  });
});

describe("the admin listener", () => {
  it("has its own routes and none of the clients'", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    expect(await callAdmin(gateway, "POST", PATH, CHAT)).toMatchObject({ status: 404 });
    expect(e1.calls).toHaveLength(0);
    expect((await fetch(`${gateway.admin}/metrics`)).headers.get("content-type")).toMatch(
      /^text\/plain; version=0\.0\.4/,
    );
  });

  it("can be off", async () => {
    const e1 = await startFake(ok());
    const { admin: _, ...config } = testConfig([e1.url]);
    const gateway = await runGateway({ ...config, admin: undefined });
    expect(gateway.adminUrl).toBeUndefined();
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
  });
});
