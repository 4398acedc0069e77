import { describe, expect, it } from "vitest";
import {
  DONE_EVENT,
  type FakeUpstream,
  FINISH_EVENT,
  headThenHold,
  ok,
  sse,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, type ClientCall, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const WHOLE_STREAM = tokenEvent(0) + FINISH_EVENT + DONE_EVENT;

/** Endpoints that take so many requests at a time, and a holding of so many. */
function startCapped(fakes: readonly FakeUpstream[], maxRequests: number, held: number): Promise<TestGateway> {
  const endpoints = fakes.map(({ url }, i) => testEndpoint(`e${i + 1}`, url, { maxRequests }));
  const holding = { maxRequests: held, maxBytes: 10_000_000, maxWaitMs: 60_000, promoteAfterMs: 10_000 };
  return startGateway([], { pool: { policy: { name: "least_connections", options: {} }, endpoints, holding } });
}

function held(gateway: TestGateway): number {
  return gateway.runtime.pools[0]?.balancer.heldRequests ?? 0;
}

describe("an endpoint with a cap", () => {
  it("has its places back when those who had them leave, round after round, whoever was refused meanwhile", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startCapped([e1], 2, 0);
    const url = `${gateway.listenUrl}${PATH}`;
    const rounds = 10;
    for (let round = 1; round <= rounds; round++) {
      const streams = [send(url, { body: STREAMED_CHAT }), send(url, { body: STREAMED_CHAT })];
      await e1.call(2 * round - 1);
      const extra = await Promise.all(Array.from({ length: 20 }, () => exchange(url, { body: CHAT })));
      expect(new Set(extra.map(({ status }) => status))).toEqual(new Set([429]));
      for (const stream of streams) stream.abort();
      await expectIdle(gateway);
    }
    expect(e1.calls).toHaveLength(2 * rounds);
  });

  it("is sent nobody else while a stream runs, though its head came long ago", async () => {
    const fakes = [await startFake(sse(12, 50)), await startFake(sse(12, 50))];
    const gateway = await startCapped(fakes, 1, 10);
    const url = `${gateway.listenUrl}${PATH}`;
    const first = send(url, { body: STREAMED_CHAT });
    await until(() => first.text.includes("t0 "));
    const busy = (await first.head()).headers["x-evenkeel-endpoint"];
    for (const fake of fakes) fake.behave(ok());
    for (let i = 0; i < 3; i++) {
      const answer = await exchange(url, { body: CHAT });
      expect(answer.status).toBe(200);
      expect(answer.headers["x-evenkeel-endpoint"]).not.toBe(busy);
    }
    expect(await first.answer()).toMatchObject({ isWhole: true });
    await expectIdle(gateway);
  });

  it("leaves nothing of a hundred clients that give up waiting, and serves the one that stays first of all", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startCapped([e1], 1, 1000);
    const url = `${gateway.listenUrl}${PATH}`;
    const busy = send(url, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    const leaving: ClientCall[] = [];
    for (let i = 0; i < 50; i++) leaving.push(send(url, { body: CHAT }));
    await until(() => held(gateway) === 50);
    const staying = send(url, { body: { ...CHAT, user: "stays" } });
    await until(() => held(gateway) === 51);
    for (let i = 0; i < 49; i++) leaving.push(send(url, { body: CHAT }));
    await until(() => held(gateway) === 100);
    for (const client of leaving) client.abort();
    await until(() => held(gateway) === 1);
    e1.behave(ok());
    call.response.end(WHOLE_STREAM);
    expect(await staying.answer()).toMatchObject({ status: 200 });
    await busy.answer();
    expect(e1.calls).toHaveLength(2);
    expect(JSON.parse(e1.calls[1]?.body.toString() ?? "").user).toBe("stays");
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ ok: 2, client_closed: 99 });
  });
});

describe("an endpoint without a cap", () => {
  it("has five hundred streams at once, none of which waits anywhere", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const url = `${gateway.listenUrl}${PATH}`;
    const clients = Array.from({ length: 500 }, () => send(url, { body: STREAMED_CHAT }));
    await until(() => e1.calls.length === 500);
    for (const { response } of e1.calls) response.end(WHOLE_STREAM);
    const answers = await Promise.all(clients.map((client) => client.answer()));
    expect(answers.every(({ isWhole }) => isWhole)).toBe(true);
    await expectIdle(gateway);
  });
});
