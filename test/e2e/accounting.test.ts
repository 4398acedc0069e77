import { describe, expect, it, vi } from "vitest";
import type { Member } from "../../src/core/index.ts";
import type { ServedPool } from "../../src/runtime/index.ts";
import {
  DONE_EVENT,
  FINISH_EVENT,
  headThenHold,
  hold,
  REFUSING_URL,
  sse,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, type ClientCall, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const RUNS = 50;

function memberOf(gateway: TestGateway, index = 0): Member {
  return gateway.runtime.pools[0]?.balancer.members[index] as Member;
}

/** Sends `RUNS` requests at once, streamed and whole in turn. */
function sendAll(gateway: TestGateway): ClientCall[] {
  return Array.from({ length: RUNS }, (_, i) =>
    send(`${gateway.listenUrl}${PATH}`, { body: i % 2 === 0 ? CHAT : STREAMED_CHAT }),
  );
}

describe("fifty requests at once leave nothing in the ledger", () => {
  it("that find nobody listening", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    await Promise.all(sendAll(gateway).map((client) => client.answer()));
    await expectIdle(gateway);
  });

  it("that nobody answers in time", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], { timeouts: { firstByteMs: 100 } });
    const answers = await Promise.all(sendAll(gateway).map((client) => client.answer()));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([504]));
    await expectIdle(gateway);
    await until(() => e1.calls.every(({ isAborted }) => isAborted));
  });

  it("whose clients leave while they are held", async () => {
    const e1 = await startFake(headThenHold);
    const endpoints = [testEndpoint("e1", e1.url, { kvCapacityTokens: 1000 })];
    const gateway = await startGateway([], { pool: { policy: { name: "least_delay", options: {} }, endpoints } });
    const chat = (n: number) => ({
      ...STREAMED_CHAT,
      max_tokens: 8,
      messages: [{ role: "user", content: `${n} `.repeat(1200) }],
    });
    const url = `${gateway.listenUrl}${PATH}`;
    const first = send(url, { body: chat(0) });
    const call = await e1.call(0);
    call.response.write(tokenEvent(0));
    await first.receives(tokenEvent(0));
    const heldRequests = (): number => gateway.runtime.pools[0]?.balancer.heldRequests ?? 0;
    const waiting = Array.from({ length: RUNS }, (_, i) => send(url, { body: chat(i + 1) }));
    await until(() => heldRequests() === RUNS);
    for (const client of waiting) client.abort();
    await until(() => heldRequests() === 0);
    expect(memberOf(gateway).account.requests).toBe(1);
    call.response.end(FINISH_EVENT + DONE_EVENT);
    expect(await first.answer()).toMatchObject({ isWhole: true });
    await expectIdle(gateway);
    expect(e1.calls).toHaveLength(1);
    expect(await gateway.outcomes()).toEqual({ ok: 1, client_closed: RUNS });
  });

  it("that fail inside the balancer after an endpoint was chosen", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const thrown = vi.spyOn(gateway.runtime.pools[0] as ServedPool, "monitor").mockImplementation(() => {
      throw new Error("a bug");
    });
    const answers = await Promise.all(sendAll(gateway).map((client) => client.answer()));
    thrown.mockRestore();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([500]));
    expect(await gateway.outcomes()).toEqual({ internal_error: RUNS });
    await expectIdle(gateway);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
  });

  it("that fail inside the balancer in the middle of a stream", async () => {
    const e1 = await startFake(sse(5, 20));
    const gateway = await startGateway([e1]);
    const { balancer } = gateway.runtime.pools[0] as ServedPool;
    const thrown = vi.spyOn(balancer, "progress").mockImplementation(() => {
      throw new Error("a bug");
    });
    const clients = Array.from({ length: RUNS }, () => send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT }));
    for (const { isWhole } of await Promise.all(clients.map((client) => client.answer()))) expect(isWhole).toBe(false);
    thrown.mockRestore();
    await expectIdle(gateway);
  });
});

describe("a request whose end fails inside the balancer", () => {
  it("has its answer and its one outcome all the same", async () => {
    const gateway = await startGateway([await startFake()]);
    vi.spyOn((gateway.runtime.pools[0] as ServedPool).balancer, "finish").mockImplementation(() => {
      throw new Error("a bug");
    });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200, isWhole: true });
    await until(async () => (await gateway.metric("evenkeel_requests_in_flight")) === 0);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });
});

describe("the account of an endpoint", () => {
  it("is not moved by requests that are answered without one", async () => {
    const fakes = [await startFake(hold), await startFake(hold)];
    const gateway = await startGateway(fakes, { pool: { policy: { name: "least_connections", options: {} } } });
    const url = `${gateway.listenUrl}${PATH}`;
    const local = (i: number) =>
      i % 4 === 0
        ? exchange(url, { body: "{" })
        : i % 4 === 1
          ? exchange(url, { body: { ...CHAT, model: "nope" } })
          : i % 4 === 2
            ? exchange(url, { method: "PUT" })
            : exchange(`${gateway.listenUrl}/v1/models`, { method: "GET" });
    for (let i = 0; i < 100; i++) {
      await local(i);
      expect([memberOf(gateway, 0), memberOf(gateway, 1)].map(({ account }) => account.requests)).toEqual([0, 0]);
    }
    const clients = Array.from({ length: 100 }, () => send(url, { body: CHAT }));
    await until(() => fakes.reduce((sum, { calls }) => sum + calls.length, 0) === 100);
    expect(fakes.map(({ calls }) => calls.length)).toEqual([50, 50]);
    for (const client of clients) client.abort();
    await expectIdle(gateway);
  });

  it("is not touched by probes, however many there are", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake(headThenHold)];
    const gateway = await startGateway([e1, e2], {
      pool: { policy: { name: "least_connections", options: {} } },
      health: { intervalMs: 20 },
    });
    const url = `${gateway.listenUrl}${PATH}`;
    const clients = Array.from({ length: 16 }, () => send(url, { body: STREAMED_CHAT }));
    await until(() => e1.calls.length === 8 && e2.calls.length === 8);
    for (const { response } of e2.calls.slice(3)) response.end(DONE_EVENT);
    await until(() => memberOf(gateway, 1).account.requests === 3);
    const probesBefore = e1.probes.length;
    while (e1.probes.length < probesBefore + 30) {
      expect(memberOf(gateway).account.requests).toBe(8);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (let i = 0; i < 4; i++) {
      clients.push(send(url, { body: STREAMED_CHAT }));
      await e2.call(8 + i);
    }
    expect(e1.calls).toHaveLength(8);
    for (const client of clients) client.abort();
    await expectIdle(gateway);
  });

  it("keeps the work of an endpoint that was down for a while", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake(headThenHold)];
    const gateway = await startGateway([e1, e2], {
      pool: { policy: { name: "least_connections", options: {} } },
      health: { intervalMs: 20, unhealthyAfter: 1 },
    });
    const url = `${gateway.listenUrl}${PATH}`;
    const clients = Array.from({ length: 10 }, () => send(url, { body: STREAMED_CHAT }));
    await until(() => e1.calls.length === 5 && e2.calls.length === 5);
    e1.onProbe = (_request, response) => void response.writeHead(500).end();
    await until(() => memberOf(gateway).availability === "down");
    expect(memberOf(gateway).account.requests).toBe(5);
    e1.onProbe = undefined;
    await until(() => memberOf(gateway).availability === "ready");
    expect(memberOf(gateway).account.requests).toBe(5);
    for (let i = 0; i < 4; i++) clients.push(send(url, { body: STREAMED_CHAT }));
    await until(() => e1.calls.length === 7 && e2.calls.length === 7);
    for (const { response } of e1.calls.slice(0, 5)) response.end(DONE_EVENT);
    await until(() => memberOf(gateway).account.requests === 2);
    for (const client of clients) client.abort();
    await expectIdle(gateway);
  });
});
