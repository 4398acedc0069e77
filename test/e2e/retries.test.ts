import { describe, expect, it } from "vitest";
import { type Behaviour, code, hold, ok, REFUSING_URL } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { startOrdered } from "../support/ordered-pool.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const reset: Behaviour = ({ socket }) => void socket.resetAndDestroy();
const busy = code(503, { error: "busy" });

describe("an answer that says the endpoint is busy or broken", () => {
  it.each([429, 500, 502, 503, 504])("is not the client's as long as another may do better: %i", async (status) => {
    const gateway = await startOrdered([code(status, { error: "no" }), ok()]);
    for (const body of [CHAT, STREAMED_CHAT]) {
      const answer = await gateway.chat(body);
      expect(answer).toMatchObject({ status: 200, isWhole: true, headers: { "x-evenkeel-endpoint": "e2" } });
    }
    expect(await gateway.outcomes()).toEqual({ ok: 2 });
    const reason = status === 429 || status === 503 ? "busy" : "failed";
    expect(await gateway.metric("evenkeel_attempts_failed_total", { endpoint: "e1", reason })).toBeGreaterThan(0);
    await expectIdle(gateway);
  });

  it("passes as it was if no other does better: the last one counts", async () => {
    const gateway = await startOrdered([
      code(503, { error: "first" }, { "x-a": "1" }),
      code(429, { error: "second" }, { "retry-after": "7", "x-a": "2" }),
    ]);
    const answer = await gateway.chat(CHAT);
    expect(answer).toMatchObject({ status: 429, isWhole: true, headers: { "retry-after": "7", "x-a": "2" } });
    expect(answer.headers["x-evenkeel-endpoint"]).toBe("e2");
    expect(JSON.parse(answer.text)).toEqual({ error: "second" });
    expect(await gateway.outcomes()).toEqual({ upstream_4xx: 1 });
    await expectIdle(gateway);
  });

  it.each([
    { what: "loses the request", second: reset },
    { what: "refuses the connection", second: REFUSING_URL },
  ])("passes as it was if the other $what", async ({ second }) => {
    const gateway = await startOrdered([code(503, { error: "first" }, { "retry-after": "3" }), second]);
    const answer = await gateway.chat(CHAT);
    expect(answer).toMatchObject({ status: 503, text: '{"error":"first"}', headers: { "retry-after": "3" } });
    expect(answer.headers["x-evenkeel-endpoint"]).toBe("e1");
    expect(await gateway.metric("evenkeel_requests_total", { endpoint: "e1", outcome: "upstream_5xx" })).toBe(1);
    await expectIdle(gateway);
  });

  it("passes at any length if there is no other", async () => {
    const body = "x".repeat(300_000);
    const gateway = await startOrdered([code(503, body)]);
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 503, text: body, isWhole: true });
    expect(await gateway.metric("evenkeel_retries_denied_total", { reason: "no_endpoint" })).toBe(1);
  });

  it("at a length that nobody keeps is cancelled for the other's, and leaves no connections behind", async () => {
    const gateway = await startOrdered([code(503, "x".repeat(1_000_000), { "retry-after": "0" }), ok()], {
      failover: { minRetriesPerSecond: 1_000 },
    });
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        for (let i = 0; i < 10; i++) expect(await gateway.chat(CHAT)).toMatchObject({ status: 200 });
      }),
    );
    const [e1] = gateway.fakes;
    expect(e1?.calls.length).toBeGreaterThan(10);
    expect(e1?.openSockets).toBeLessThanOrEqual(11);
    await expectIdle(gateway);
  });

  it("is waited for only so long before the other is asked", async () => {
    const gateway = await startOrdered([({ response }) => void response.writeHead(503).write("{"), ok()]);
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e2" } });
    const [e1] = gateway.fakes;
    await until(() => e1?.calls[0]?.isAborted === true);
    await expectIdle(gateway);
  });

  it("leaves its endpoint alone for as long as it asks", async () => {
    const gateway = await startOrdered([code(429, {}, { "retry-after": "600" }), ok()]);
    for (let i = 0; i < 5; i++) expect(await gateway.chat(CHAT)).toMatchObject({ status: 200 });
    expect(gateway.hits()).toEqual([1, 5]);
  });

  it("tries no endpoint twice and no more than may be tried", async () => {
    const gateway = await startOrdered([busy, busy, busy, busy, ok()], { failover: { attempts: 3 } });
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 503, headers: { "x-evenkeel-endpoint": "e3" } });
    expect(gateway.hits()).toEqual([1, 1, 1, 0, 0]);
    expect(await gateway.metric("evenkeel_retries_denied_total", { reason: "attempts" })).toBe(1);
  });

  it.each(["round_robin", "session_affinity", "least_delay"])(
    "never goes to the same endpoint again: %s",
    async (name) => {
      const policy = { name, options: {} };
      const gateway = await startOrdered([busy, busy, busy, ok()], { pool: { policy }, failover: { attempts: 4 } });
      for (let i = 0; i < 3; i++) {
        const answer = await gateway.chat(CHAT, { "x-session-id": `s${i}` });
        expect(answer).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e4" } });
      }
      expect(Math.max(...gateway.hits().slice(0, 3))).toBeLessThanOrEqual(3);
    },
  );
});

describe("an answer that is the client's fault", () => {
  it.each([400, 401, 403, 404, 405, 409, 413, 422])("passes once, unchanged, and hurts nobody: %i", async (status) => {
    const faulty = code(status, { error: "yours" }, { "x-a": "1" });
    const gateway = await startOrdered([faulty, faulty], { ejection: { failures: 2, minRequests: 2 } });
    for (let i = 0; i < 10; i++) {
      const answer = await gateway.chat(CHAT);
      expect(answer).toMatchObject({ status, text: '{"error":"yours"}', headers: { "x-a": "1" } });
    }
    expect(gateway.hits()).toEqual([10, 0]);
    gateway.fakes[0]?.behave(ok());
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e1" } });
    expect(await gateway.metric("evenkeel_attempts_failed_total")).toBe(0);
  });

  it("between failures does not excuse them", async () => {
    const gateway = await startOrdered([hold, ok()], { ejection: { failures: 3 }, failover: { attempts: 1 } });
    const [e1] = gateway.fakes;
    for (const status of [500, 500, 429, 400, 500]) {
      e1?.next(code(status, {}, { "retry-after": "0" }));
      expect(await gateway.chat(CHAT)).toMatchObject({ status });
    }
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e2" } });
  });
});

describe("an endpoint that does not answer in time", () => {
  const timeouts = { firstByteMs: 100 };

  it.each([
    { slowResends: 0, hits: [1, 0, 0], status: 504 },
    { slowResends: 1, hits: [1, 1, 0], status: 504 },
    { slowResends: 2, hits: [1, 1, 1], status: 200 },
  ])("is given up for $slowResends others at most", async ({ slowResends, hits, status }) => {
    const gateway = await startOrdered([hold, hold, ok()], { timeouts, failover: { slowResends } });
    expect(await gateway.chat(CHAT)).toMatchObject({ status });
    expect(gateway.hits()).toEqual(hits);
    expect(await gateway.metric("evenkeel_retries_total", { reason: "slow" })).toBe(slowResends);
    await expectIdle(gateway);
  });

  it("hears of it before the next one is asked", async () => {
    let wasClosedBefore: boolean | undefined;
    const second: Behaviour = (call) => {
      setTimeout(() => {
        wasClosedBefore = gateway.fakes[0]?.calls[0]?.isAborted;
        ok()(call);
      }, 20);
    };
    const gateway = await startOrdered([hold, second], { timeouts, failover: { slowResends: 1 } });
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 200 });
    expect(wasClosedBefore).toBe(true);
    await expectIdle(gateway);
  });
});

describe("a request whose endpoint dies on it", () => {
  it("is not lost, whatever the budget", async () => {
    const gateway = await startOrdered([hold, ok()], { failover: { budgetRatio: 0, minRetriesPerSecond: 0 } });
    const clients = Array.from({ length: 30 }, () => send(gateway.chatUrl, { body: CHAT }));
    const [e1] = gateway.fakes;
    await e1?.call(29);
    await e1?.kill();
    for (const client of clients) expect(await client.answer()).toMatchObject({ status: 200 });
    expect(await gateway.outcomes()).toEqual({ ok: 30 });
    // Nobody listens there any more, and that costs nothing either.
    for (let i = 0; i < 5; i++) expect(await gateway.chat(CHAT)).toMatchObject({ status: 200 });
    await expectIdle(gateway);
  });
});

describe("a request whose connection is closed before it goes out", () => {
  it("was not sent, so that another endpoint may be asked whatever was lost", async () => {
    const gateway = await startOrdered([ok(), ok()], { failover: { resends: 0 } });
    const client = new RawClient(gateway.chatUrl).write(rawPost("/v1/chat/completions", CHAT));
    await until(() => client.received.endsWith("\r\n0\r\n\r\n"));
    client.write(rawPost("/v1/chat/completions", CHAT));
    await gateway.fakes[0]?.kill();
    await until(() => client.received.split("HTTP/1.1 ").length === 3);
    expect(client.received).toContain("x-evenkeel-endpoint: e2");
    client.socket.destroy();
    await expectIdle(gateway);
  });
});

describe("the client's patience", () => {
  it.each([
    { header: { "x-evenkeel-timeout-ms": "60" }, hits: [1, 0] },
    { header: { "x-stainless-timeout": "0.06" }, hits: [1, 0] },
    { header: { "x-stainless-timeout": "60" }, hits: [1, 1] },
  ])("ends attempts: $header", async ({ header, hits }) => {
    const slowly: Behaviour = (call) => void setTimeout(() => busy(call), 80);
    const gateway = await startOrdered([slowly, ok()]);
    const { status } = await gateway.chat(CHAT, header as Record<string, string>);
    expect(status).toBe(hits[1] === 0 ? 503 : 200);
    expect(gateway.hits()).toEqual(hits);
  });
});

describe("balancers behind each other", () => {
  it("tell the endpoint which attempt it is, if there may be more than one", async () => {
    const gateway = await startOrdered([busy, ok()]);
    await gateway.chat(CHAT, { "X-Evenkeel-Priority": "low" });
    expect(gateway.fakes.map(({ calls }) => calls[0]?.headers["x-evenkeel-attempt"])).toEqual(["1", "2"]);
    const once = await startOrdered([ok()], { failover: { attempts: 1 } });
    await once.chat(CHAT);
    expect(once.fakes[0]?.calls[0]?.headers).not.toHaveProperty("x-evenkeel-attempt");
  });

  it.each([
    { what: "a busy endpoint", first: busy, status: 503, hits: [1, 0] },
    { what: "a broken endpoint", first: code(500, {}), status: 500, hits: [1, 0] },
    { what: "a lost connection", first: reset, status: 502, hits: [1, 0] },
  ])("leave it to the first of them to go elsewhere after $what", async ({ first, status, hits }) => {
    const gateway = await startOrdered([first, ok()]);
    expect(await gateway.chat(CHAT, { "x-evenkeel-attempt": "1" })).toMatchObject({ status });
    expect(gateway.hits()).toEqual(hits);
    expect(await gateway.metric("evenkeel_retries_denied_total", { reason: "nested" })).toBe(1);
  });

  it("go on to another endpoint each where nobody listens", async () => {
    const gateway = await startOrdered([REFUSING_URL, ok()]);
    expect(await gateway.chat(CHAT, { "x-evenkeel-attempt": "1" })).toMatchObject({ status: 200 });
  });

  it("send a request to as many endpoints as one of them would, not to the product", async () => {
    const inner = [await startOrdered([busy, busy, busy]), await startOrdered([busy, busy, busy])];
    const endpoints = inner.map(({ listenUrl }, i) => testEndpoint(`e${i + 1}`, listenUrl, { engine: "openai" }));
    const outer = await startOrdered([], { pool: { endpoints } });
    expect(await exchange(outer.chatUrl, { body: CHAT })).toMatchObject({ status: 503 });
    expect(inner.flatMap((one) => one.hits()).reduce((sum, hits) => sum + hits)).toBe(2);
  });
});

describe("the retry budget", () => {
  it("bounds what all requests together may be sent again", async () => {
    const gateway = await startOrdered([busy, busy, busy], {
      failover: { attempts: 3, budgetRatio: 0.2, minRetriesPerSecond: 1 },
    });
    const requests = 500;
    const statuses = new Set<number>();
    let left = requests;
    const client = async (): Promise<void> => {
      while (left-- > 0) statuses.add((await gateway.chat(CHAT)).status);
    };
    await Promise.all(Array.from({ length: 20 }, client));
    const sent = gateway.hits().reduce((sum, hits) => sum + hits);
    expect([...statuses]).toEqual([503]);
    expect(sent).toBeLessThanOrEqual(requests * 1.2 + 10);
    expect(sent).toBeGreaterThan(requests * 1.1);
    expect(await gateway.metric("evenkeel_retries_total")).toBe(sent - requests);
    expect(await gateway.metric("evenkeel_retries_denied_total", { reason: "budget" })).toBeGreaterThan(0);
    expect(await gateway.outcomes()).toEqual({ upstream_5xx: requests });
    await expectIdle(gateway);
  });
});

describe("a request of which nothing is known but its path", () => {
  const passthrough = ["/v1/files"];

  it.each([
    { method: "POST", first: reset, status: 502, hits: [1, 0] },
    { method: "POST", first: code(500, {}), status: 500, hits: [1, 0] },
    { method: "POST", first: busy, status: 200, hits: [1, 1] },
    { method: "GET", first: reset, status: 200, hits: [1, 1] },
    { method: "DELETE", first: code(500, {}), status: 200, hits: [1, 1] },
  ])("is done twice only if that is the same as once: $method", async ({ method, first, status, hits }) => {
    const gateway = await startOrdered([first, ok()], { passthrough });
    const answer = await exchange(`${gateway.listenUrl}/v1/files`, {
      method,
      ...(method === "POST" && { body: CHAT }),
    });
    expect(answer.status).toBe(status);
    expect(gateway.hits()).toEqual(hits);
  });
});
