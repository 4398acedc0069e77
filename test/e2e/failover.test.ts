import { describe, expect, it } from "vitest";
import {
  type Behaviour,
  code,
  headThenHold,
  hold,
  ok,
  REFUSING_URL,
  rstAt,
  sse,
  startFake,
  stream,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { type OrderedGateway, startOrdered } from "../support/ordered-pool.ts";
import { testConfig } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** Resets the connection without a byte of an answer. */
const reset: Behaviour = ({ socket }) => void socket.resetAndDestroy();
/** Closes the connection without a byte of an answer. */
const hangUp: Behaviour = ({ socket }) => void socket.destroy();

/** Slow enough that no probe takes part in a test. */
const NO_PROBES = { intervalMs: 60_000, timeoutMs: 500 };

describe("an endpoint that refuses connections", () => {
  it.each([CHAT, STREAMED_CHAT])("is passed over before the client notices", async (body) => {
    const e2 = await startFake(ok());
    const gateway = await runGateway(testConfig([REFUSING_URL, e2.url]));
    const answers = [];
    for (let i = 0; i < 6; i++) answers.push(await exchange(`${gateway.listenUrl}${PATH}`, { body }));
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 200, isWhole: true, headers: { "x-evenkeel-endpoint": "e2" } });
    }
    expect(e2.calls.map(({ body: sent }) => JSON.parse(sent.toString()).model)).toEqual(new Array(6).fill("m"));
    expect(await gateway.metric("evenkeel_attempts_failed_total", { endpoint: "e1" })).toBeGreaterThanOrEqual(1);
    expect(await gateway.outcomes()).toEqual({ ok: 6 });
    await expectIdle(gateway);
  });

  it("is taken out when probe and traffic agree, and comes back by itself", async () => {
    const e1 = await startFake();
    const { port } = new URL(e1.url);
    const e2 = await startFake();
    const gateway = await startGateway([e1, e2]);
    const availability = (): string | undefined => gateway.runtime.pools[0]?.balancer.members[0]?.availability;
    await until(() => availability() === "ready");
    await e1.kill();
    for (let i = 0; i < 4; i++) {
      expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    }
    await until(() => availability() === "down");
    const again = await startFake(ok(), { port: Number(port) });
    await until(() => availability() === "ready");
    for (let i = 0; i < 4; i++) await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(again.calls).toHaveLength(2);
  });

  it("with all others too gives a 502, and a 503 with Retry-After once they are known to be down", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL, "http://127.0.0.1:2"]));
    const first = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect([502, 503]).toContain(first.status);
    expect(first.headers["x-request-id"]).toMatch(/\S/);
    await until(() => gateway.runtime.pools[0]?.balancer.members.every((one) => one.availability === "down") === true);
    const second = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(second.status).toBe(503);
    expect(Number(second.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(JSON.parse(second.text).error).toMatchObject({ type: "server_error", code: "no_available_endpoint" });
    await expectIdle(gateway);
  });

  it("is tried once per request, and no more endpoints than the limit says", async () => {
    const urls = [REFUSING_URL, "http://127.0.0.1:2", "http://127.0.0.1:3", "http://127.0.0.1:4"];
    const gateway = await runGateway(testConfig(urls, { failover: { attempts: 2 }, health: NO_PROBES }));
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.text).error).toMatchObject({
      code: "upstream_error",
      message: "No endpoint that was tried gave an answer (last: ECONNREFUSED).",
    });
    expect(await gateway.metric("evenkeel_attempts_failed_total")).toBe(2);
    await expectIdle(gateway);
  });
});

describe("a connection that breaks before an answer", () => {
  it.each([
    { how: "reset", behaviour: reset },
    { how: "closed", behaviour: hangUp },
  ])(
    "and was fresh when it was $how sends the request to another endpoint, not to the same again",
    async ({ behaviour }) => {
      const [e1, e2] = [await startFake(behaviour), await startFake(behaviour)];
      const gateway = await runGateway(testConfig([e1.url, e2.url], { health: NO_PROBES }));
      const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
      expect(answer.status).toBe(502);
      expect([e1.calls.length, e2.calls.length]).toEqual([1, 1]);
      expect(gateway.runtime.pools[0]?.balancer.members.map(({ availability }) => availability)).not.toContain("down");
      await expectIdle(gateway);
    },
  );

  it.each([
    { how: "reset", behaviour: reset },
    { how: "closed", behaviour: hangUp },
  ])("and had been idle when it was $how is replaced by a fresh one, once", async ({ behaviour }) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const url = `${gateway.listenUrl}${PATH}`;
    expect(await exchange(url, { body: CHAT })).toMatchObject({ status: 200 });
    e1.next(behaviour);
    expect(await exchange(url, { body: CHAT })).toMatchObject({ status: 200 });
    expect(e1.calls).toHaveLength(3);
    expect(e1.calls[1]?.socket).toBe(e1.calls[0]?.socket);
    expect(e1.calls[2]?.socket).not.toBe(e1.calls[1]?.socket);
    expect(e1.calls[2]?.body).toEqual(e1.calls[1]?.body);

    await exchange(url, { body: CHAT });
    e1.next(behaviour, behaviour);
    expect(await exchange(url, { body: CHAT })).toMatchObject({ status: 502 });
    expect(e1.calls).toHaveLength(6);
    await expectIdle(gateway);
  });

  it("and had been idle is not replaced by another that had been idle", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const url = `${gateway.listenUrl}${PATH}`;
    const clients = Array.from({ length: 4 }, () => send(url, { body: CHAT }));
    await e1.call(3);
    for (const call of e1.calls) ok()(call);
    await Promise.all(clients.map((client) => client.answer()));
    const old = new Set(e1.calls.map(({ socket }) => socket));
    expect(old.size).toBe(4);
    e1.behave((call) => (old.has(call.socket) ? reset(call) : ok()(call)));
    expect(await exchange(url, { body: CHAT })).toMatchObject({ status: 200 });
    expect(e1.calls).toHaveLength(6);
  });

  it("and was closed by the engine for idleness costs no request anything", async () => {
    const e1 = await startFake(ok(), { keepAliveMs: 30 });
    const gateway = await startGateway([e1]);
    for (let i = 0; i < 25; i++) {
      // Around the moment at which the engine closes.
      await new Promise((resolve) => setTimeout(resolve, 26 + (i % 10)));
      expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    }
  });

  it("after the head of an answer that is not streamed still goes elsewhere: nothing has reached the client", async () => {
    const headAlone: Behaviour = ({ response, socket }) => {
      response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
      setImmediate(() => socket.destroy());
    };
    const [e1, e2] = [await startFake(headAlone), await startFake(ok())];
    const gateway = await startGateway([e1, e2]);
    for (let i = 0; i < 2; i++) {
      const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
      expect(answer).toMatchObject({ status: 200, isWhole: true, headers: { "x-evenkeel-endpoint": "e2" } });
    }
    await expectIdle(gateway);
  });
});

describe("a request that costs endpoints their connection", () => {
  it("goes to one more endpoint and no further: it may be what kills them", async () => {
    const fakes = [];
    for (let i = 0; i < 4; i++) fakes.push(await startFake(hangUp));
    const gateway = await startGateway(fakes, { failover: { attempts: 4 }, health: NO_PROBES });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 502 });
    expect(fakes.reduce((sum, { calls }) => sum + calls.length, 0)).toBe(2);
    expect(await gateway.metric("evenkeel_attempts_failed_total")).toBe(2);
    await expectIdle(gateway);
  });

  it("goes no further over connections that had been idle, though those it killed refuse another one", async () => {
    const fakes = await Promise.all([0, 1, 2, 3].map(() => startFake(ok())));
    const gateway = await startGateway(fakes, { failover: { attempts: 4 }, health: NO_PROBES });
    for (const _ of fakes) await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    for (const fake of fakes) fake.behave(() => void fake.kill());
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 502 });
    expect(fakes.map(({ calls }) => calls.length).sort()).toEqual([1, 1, 2, 2]);
    expect(await gateway.metric("evenkeel_attempts_failed_total", { reason: "lost" })).toBe(2);
    await expectIdle(gateway);
  });

  it("is not sent to the same one again if its connection dies after a while", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1], { health: NO_PROBES });
    await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    e1.behave((call) => void setTimeout(() => reset(call), 1_100));
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 502 });
    expect(e1.calls).toHaveLength(2);
    expect(e1.calls[1]?.socket).toBe(e1.calls[0]?.socket);
  });

  it("may be refused a connection by others on top", async () => {
    const [e2, e4] = [await startFake(hangUp), await startFake(ok())];
    const urls = [REFUSING_URL, e2.url, "http://127.0.0.1:2", e4.url];
    const gateway = await runGateway(testConfig(urls, { failover: { attempts: 4 }, health: NO_PROBES }));
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
  });
});

describe("an endpoint that answers every request with a failure while its probes are good", () => {
  const inBand = (error: object): Behaviour => stream(`data: ${JSON.stringify({ error })}\n\ndata: [DONE]\n\n`);
  const isEjected = (gateway: OrderedGateway): boolean =>
    gateway.runtime.pools[0]?.balancer.members[0]?.breaker.isOpen === true;

  it.each([
    { how: "500", behaviour: code(500, {}), body: CHAT },
    { how: "502", behaviour: code(502, {}), body: CHAT },
    { how: "streams that begin with an error", behaviour: inBand({ message: "dead", code: 500 }), body: STREAMED_CHAT },
    { how: "connections that break", behaviour: reset, body: CHAT },
  ])("is taken out, and no client has noticed: $how", async ({ behaviour, body }) => {
    const gateway = await startOrdered([behaviour, body === CHAT ? ok() : sse(1)], { ejection: { failures: 5 } });
    for (let i = 0; i < 12; i++) expect(await gateway.chat(body)).toMatchObject({ status: 200, isWhole: true });
    expect(gateway.hits()).toEqual([5, 12]);
    expect(await gateway.outcomes()).toEqual({ ok: 12 });
  });

  it.each([
    { how: "501", behaviour: code(501, {}), body: CHAT },
    { how: "a stream of a 400", behaviour: inBand({ message: "too long", code: 400 }), body: STREAMED_CHAT },
  ])("stays in if what it says is no failure of its own: $how", async ({ behaviour, body }) => {
    const gateway = await startOrdered([behaviour, ok()], { ejection: { failures: 5, minRequests: 5 } });
    for (let i = 0; i < 12; i++) await gateway.chat(body);
    expect(gateway.hits()).toEqual([12, 0]);
  });

  it.each([
    { how: "429", behaviour: code(429, {}, { "retry-after": "0" }), body: CHAT },
    { how: "503", behaviour: code(503, {}, { "retry-after": "0" }), body: CHAT },
    { how: "a stream of overload", behaviour: inBand({ message: "busy", code: 503 }), body: STREAMED_CHAT },
  ])("is not taken out for being busy: $how", async ({ behaviour, body }) => {
    const gateway = await startOrdered([behaviour, body === CHAT ? ok() : sse(1)], { ejection: { failures: 2 } });
    for (let i = 0; i < 6; i++) expect(await gateway.chat(body)).toMatchObject({ status: 200 });
    expect(isEjected(gateway)).toBe(false);
  });

  it("stays in while good answers come between", async () => {
    const gateway = await startOrdered([ok(), ok()], { ejection: { failures: 3 } });
    gateway.fakes[0]?.next(code(500, {}), code(500, {}), ok(), code(500, {}), code(500, {}), ok());
    for (let i = 0; i < 12; i++) expect(await gateway.chat(CHAT)).toMatchObject({ status: 200 });
    expect(gateway.hits()).toEqual([12, 4]);
  });

  it("stays in if it is the last", async () => {
    const gateway = await startOrdered([code(500, {}), REFUSING_URL], {
      ejection: { failures: 2 },
      health: { intervalMs: 100 },
    });
    await until(() => gateway.runtime.pools[0]?.balancer.members[1]?.availability === "down");
    for (let i = 0; i < 6; i++) expect(await gateway.chat(CHAT)).toMatchObject({ status: 500 });
    expect(gateway.hits()).toEqual([6]);
  });

  it("is tried again after a while, and is back as soon as it answers well", async () => {
    const gateway = await startOrdered([code(500, {}), ok()], { ejection: { failures: 3, baseMs: 50 } });
    for (let i = 0; i < 3; i++) await gateway.chat(CHAT);
    expect(isEjected(gateway)).toBe(true);
    gateway.fakes[0]?.behave(ok());
    await until(async () => (await gateway.chat(CHAT)).headers["x-evenkeel-endpoint"] === "e1");
    expect(isEjected(gateway)).toBe(false);
  });
});

describe("an answer that has begun", () => {
  it.each([1, 5])("is never begun again elsewhere: broken after %i events", async (count) => {
    const fakes = [await startFake(rstAt(count)), await startFake(rstAt(count))];
    const gateway = await startGateway(fakes);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer.isWhole).toBe(false);
    expect(answer.text.match(/"content":"t0 "/g)).toHaveLength(1);
    expect(fakes[0]?.calls.length).toBe(1 - (fakes[1]?.calls.length ?? 0));
  });
});

describe("a time-out", () => {
  it("of probes while tokens flow is no sign of death", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1], { health: { intervalMs: 100, timeoutMs: 60, unhealthyAfter: 2 } });
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    let starved = 0;
    e1.onProbe = () => void starved++;
    let sent = 0;
    while (starved < 4) {
      call.response.write(tokenEvent(sent));
      await client.receives(tokenEvent(sent++));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(gateway.runtime.pools[0]?.balancer.members[0]?.availability).toBe("ready");
    call.response.end("data: [DONE]\n\n");
    await client.answer();
    await until(() => gateway.runtime.pools[0]?.balancer.members[0]?.availability === "down");
  });
});

describe("an endpoint that stands still", () => {
  const health = { intervalMs: 50, timeoutMs: 50, unhealthyAfter: 2 };

  it.each([CHAT, STREAMED_CHAT])(
    "gives up what it has not begun to another one once its probes say so: %j",
    async (body) => {
      const [e1, e2] = [await startFake(hold), await startFake(body === CHAT ? undefined : sse(2))];
      const gateway = await startGateway([e1, e2], { health, failover: { slowResends: 0 } });
      const clients = [1, 2].map(() => send(`${gateway.listenUrl}${PATH}`, { body }));
      await e1.call(0);
      e1.onProbe = () => {};
      for (const client of clients) expect(await client.answer()).toMatchObject({ status: 200, isWhole: true });
      expect(await gateway.metric("evenkeel_retries_total", { reason: "lost" })).toBe(e1.calls.length);
      await expectIdle(gateway);
    },
  );

  it("ends a stream that was opened and has shown nothing, long before its limit", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1], { health, failover: { guardMs: undefined } });
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await client.head();
    e1.onProbe = () => {};
    expect(await client.answer()).toMatchObject({ status: 200, isWhole: false });
    expect(await gateway.outcomes()).toEqual({ upstream_timeout: 1 });
    await expectIdle(gateway);
  });
});

describe("answers that are the client's fault", () => {
  it("change nothing about the endpoint", async () => {
    const e1 = await startFake(code(401, { error: "Unauthorized" }));
    const gateway = await startGateway([e1]);
    for (let i = 0; i < 20; i++) {
      expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 401 });
    }
    expect(gateway.runtime.pools[0]?.balancer.members[0]?.availability).toBe("ready");
    e1.behave(sse(1));
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT })).toMatchObject({ status: 200 });
  });

  it("leave no connections behind", async () => {
    const e1 = await startFake(code(503, "x".repeat(100_000)));
    const gateway = await startGateway([e1]);
    for (let i = 0; i < 50; i++) await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(new Set(e1.calls.map(({ socket }) => socket)).size).toBe(1);
    await expectIdle(gateway);
  });
});
