import { describe, expect, it, vi } from "vitest";
import type { ServedPool } from "../../src/runtime/index.ts";
import {
  type Behaviour,
  code,
  DONE_EVENT,
  FINISH_EVENT,
  headThenHold,
  hold,
  ok,
  sse,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, STREAMED_CHAT, send } from "../support/http-client.ts";
import { startOrdered } from "../support/ordered-pool.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const reset: Behaviour = ({ socket }) => void socket.resetAndDestroy();

/** Soon, and for every request. */
const HEDGED = { hedging: { afterMs: 50, budgetRatio: 1 } };

describe("a request without a first byte", () => {
  it.each([
    { what: "an answer", body: CHAT, first: hold, second: ok() },
    { what: "a stream", body: STREAMED_CHAT, first: hold, second: sse(2) },
    { what: "a stream, a head alone being no first byte", body: STREAMED_CHAT, first: headThenHold, second: sse(2) },
  ])("goes to a second endpoint as well, and has $what from whichever is first", async ({ body, first, second }) => {
    const gateway = await startOrdered([first, second], { ...HEDGED, failover: { guardMs: 10 } });
    const answer = await gateway.chat(body);
    expect(answer).toMatchObject({ status: 200, isWhole: true, headers: { "x-evenkeel-endpoint": "e2" } });
    expect(answer.text.match(/t0 /g)?.length ?? 0).toBe(body === CHAT ? 0 : 1);
    await until(() => gateway.fakes[0]?.calls[0]?.isAborted === true);
    expect(await gateway.metric("evenkeel_hedges_total", { result: "won" })).toBe(1);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
    expect(await gateway.metric("evenkeel_requests_total", { endpoint: "e2" })).toBe(1);
    await expectIdle(gateway);
  });

  it("has the first one's answer if that is sooner, and the second is over in that moment", async () => {
    const gateway = await startOrdered([headThenHold, headThenHold], HEDGED);
    const client = send(gateway.chatUrl, { body: STREAMED_CHAT });
    const [e1, e2] = gateway.fakes;
    const [first, second] = [await e1?.call(0), await e2?.call(0)];
    first?.response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));
    await until(() => second?.isAborted === true);
    expect(gateway.runtime.pools[0]?.balancer.members.map(({ account }) => account.requests)).toEqual([1, 0]);
    first?.response.end(FINISH_EVENT + DONE_EVENT);
    const answer = await client.answer();
    expect(answer).toMatchObject({ isWhole: true, headers: { "x-evenkeel-endpoint": "e1" } });
    expect(await gateway.metric("evenkeel_hedges_total", { result: "lost" })).toBe(1);
    expect(await gateway.metric("evenkeel_requests_total", { endpoint: "e1", outcome: "ok" })).toBe(1);
    await expectIdle(gateway);
  });

  it("is not held against whoever was slower", async () => {
    const gateway = await startOrdered([hold, ok()], { ...HEDGED, ejection: { failures: 1 } });
    await gateway.chat(CHAT);
    gateway.fakes[0]?.behave(ok());
    expect(await gateway.chat(CHAT)).toMatchObject({ headers: { "x-evenkeel-endpoint": "e1" } });
  });

  it.each([
    { what: "dies", fail: reset },
    { what: "is busy after all", fail: code(503, {}) },
  ])("has the second one's answer if the first $what", async ({ fail }) => {
    const gateway = await startOrdered([hold, hold, ok()], HEDGED);
    const client = send(gateway.chatUrl, { body: CHAT });
    const [e1, e2] = gateway.fakes;
    const [first, second] = [await e1?.call(0), await e2?.call(0)];
    if (first !== undefined) fail(first);
    await until(async () => (await gateway.metric("evenkeel_attempts_failed_total", { endpoint: "e1" })) === 1);
    if (second !== undefined) ok()(second);
    expect(await client.answer()).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e2" } });
    expect(gateway.hits()).toEqual([1, 1, 0]);
    expect(await gateway.metric("evenkeel_retries_total")).toBe(0);
    await expectIdle(gateway);
  });

  it("waits on for the first one if the second fails", async () => {
    const gateway = await startOrdered([hold, code(503, {}), ok()], HEDGED);
    const client = send(gateway.chatUrl, { body: CHAT });
    const first = await gateway.fakes[0]?.call(0);
    await until(async () => (await gateway.metric("evenkeel_hedges_total", { result: "failed" })) === 1);
    if (first !== undefined) ok()(first);
    expect(await client.answer()).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e1" } });
    expect(gateway.hits()).toEqual([1, 1, 0]);
    await expectIdle(gateway);
  });

  it("goes on to a third when both fail", async () => {
    const gateway = await startOrdered([hold, hold, ok()], HEDGED);
    const client = send(gateway.chatUrl, { body: CHAT });
    const calls = [await gateway.fakes[0]?.call(0), await gateway.fakes[1]?.call(0)];
    for (const call of calls) if (call !== undefined) code(500, {})(call);
    expect(await client.answer()).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e3" } });
    expect(gateway.hits()).toEqual([1, 1, 1]);
    await expectIdle(gateway);
  });

  it("has the refusal of whoever finds fault with it", async () => {
    const gateway = await startOrdered([hold, code(400, { error: "yours" })], HEDGED);
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 400, text: '{"error":"yours"}' });
    await until(() => gateway.fakes[0]?.calls[0]?.isAborted === true);
    await expectIdle(gateway);
  });

  it("that cannot be sent to a second for a fault of the balancer's is answered, and nobody else notices", async () => {
    const gateway = await startOrdered([hold, ok()], HEDGED);
    const other = send(gateway.chatUrl, { body: CHAT });
    expect(await other.answer()).toMatchObject({ status: 200 });
    const client = send(gateway.chatUrl, { body: CHAT });
    await gateway.fakes[0]?.call(1);
    const thrown = vi.spyOn(gateway.runtime.pools[0] as ServedPool, "monitor").mockImplementation(() => {
      throw new Error("a bug");
    });
    expect(await client.answer()).toMatchObject({ status: 500 });
    thrown.mockRestore();
    await until(() => gateway.fakes[0]?.calls[1]?.isAborted === true);
    expect(await gateway.outcomes()).toEqual({ ok: 1, internal_error: 1 });
    await expectIdle(gateway);
  });

  it("is answered even if the first cannot be ended either", async () => {
    const gateway = await startOrdered([hold, ok()], HEDGED);
    const client = send(gateway.chatUrl, { body: CHAT });
    await gateway.fakes[0]?.call(0);
    const pool = gateway.runtime.pools[0] as ServedPool;
    const bug = (): never => {
      throw new Error("a bug");
    };
    const thrown = [vi.spyOn(pool, "monitor"), vi.spyOn(pool.balancer, "finish")].map((spy) =>
      spy.mockImplementation(bug),
    );
    expect(await client.answer()).toMatchObject({ status: 500 });
    for (const each of thrown) each.mockRestore();
    await until(async () => (await gateway.metric("evenkeel_requests_in_flight")) === 0);
    expect(await gateway.outcomes()).toEqual({ internal_error: 1 });
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 200 });
  });

  it("goes to two at a time at most", async () => {
    const gateway = await startOrdered([hold, hold, ok()], { ...HEDGED, timeouts: { firstByteMs: 300 } });
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 504 });
    expect(gateway.hits()).toEqual([1, 1, 0]);
    await expectIdle(gateway);
  });

  it("leaves both when its client does", async () => {
    const gateway = await startOrdered([hold, hold], HEDGED);
    const client = send(gateway.chatUrl, { body: CHAT });
    for (const fake of gateway.fakes) await fake.call(0);
    client.abort();
    await until(() => gateway.fakes.every(({ calls }) => calls[0]?.isAborted === true));
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });

  it("waits for its answer where it is if there is no room elsewhere", async () => {
    const slowly: Behaviour = (call) => void setTimeout(() => ok()(call), 300);
    const engines = await startOrdered([slowly, slowly]);
    const endpoints = engines.fakes.map(({ url }, i) => testEndpoint(`e${i + 1}`, url, { maxRequests: 1 }));
    const gateway = await startOrdered([], { ...HEDGED, pool: { endpoints } });
    const clients = [send(gateway.chatUrl, { body: CHAT }), send(gateway.chatUrl, { body: CHAT })];
    for (const client of clients) expect(await client.answer()).toMatchObject({ status: 200 });
    expect(engines.hits()).toEqual([1, 1]);
    expect(await gateway.metric("evenkeel_holds_total")).toBe(0);
    await expectIdle(gateway);
  });

  it("goes to a second endpoint no more often than the budget allows", async () => {
    const slowly: Behaviour = (call) => void setTimeout(() => ok()(call), 200);
    const gateway = await startOrdered([slowly, slowly], { hedging: { afterMs: 50, budgetRatio: 0.1 } });
    await Promise.all(Array.from({ length: 30 }, () => gateway.chat(CHAT)));
    expect(gateway.hits()).toEqual([30, 3]);
    await expectIdle(gateway);
  });

  it.each([
    { what: "hedging is off", overrides: {}, headers: {} },
    { what: "whoever sent it here may do so itself", overrides: HEDGED, headers: { "x-evenkeel-attempt": "1" } },
    { what: "it may be tried once only", overrides: { ...HEDGED, failover: { attempts: 1 } }, headers: {} },
  ])("goes to one endpoint alone if $what", async ({ overrides, headers }) => {
    const slowly: Behaviour = (call) => void setTimeout(() => ok()(call), 300);
    const gateway = await startOrdered([slowly, ok()], overrides);
    expect(await gateway.chat(CHAT, headers as Record<string, string>)).toMatchObject({ status: 200 });
    expect(gateway.hits()).toEqual([1, 0]);
  });
});
