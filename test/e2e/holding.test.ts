import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HoldingLimits } from "../../src/core/index.ts";
import { DECISION_CHANNEL, type DecisionMessage, startServer } from "../../src/gateway/index.ts";
import { callAdmin } from "../support/admin-client.ts";
import {
  DONE_EVENT,
  type FakeUpstream,
  FINISH_EVENT,
  headThenHold,
  hold,
  ok,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { type ClientCall, RawClient, rawPost, send } from "../support/http-client.ts";
import { type TestOverrides, testConfig, testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** A chat of about `tokens` prompt tokens, unlike any other, with an answer of a few. */
function chat(tokens: number, isStreaming = true): object {
  return {
    model: "m",
    messages: [{ role: "user", content: randomUUID().repeat(Math.ceil(tokens / 9)) }],
    max_tokens: 8,
    ...(isStreaming ? { stream: true } : {}),
  };
}

/** Endpoints with room for 1000 tokens each, so that of two prompts of 600 the second has to wait. */
function startSmall(
  fakes: readonly FakeUpstream[],
  overrides: TestOverrides = {},
  limits: Partial<HoldingLimits> = {},
) {
  const endpoints = fakes.map(({ url }, i) => testEndpoint(`e${i + 1}`, url, { kvCapacityTokens: 1000 }));
  const holding = { maxRequests: 10, maxBytes: 100_000, maxWaitMs: 60_000, promoteAfterMs: 10_000, ...limits };
  return startGateway([], { ...overrides, pool: { policy: { name: "least_delay", options: {} }, endpoints, holding } });
}

function heldIn(gateway: TestGateway): number {
  return gateway.runtime.pools[0]?.balancer.heldRequests ?? 0;
}

/** A stream that shows its first token and goes on. */
interface Running {
  readonly client: ClientCall;
  /** Ends it, and waits until its client has all of it. */
  finish(): Promise<void>;
}

/** Sends a stream that has an endpoint's room from its first token on; it goes to one of `fakes`. */
async function run(gateway: TestGateway, ...fakes: readonly FakeUpstream[]): Promise<Running> {
  const before = fakes.map(({ calls }) => calls.length);
  for (const fake of fakes) fake.behave(headThenHold);
  const client = send(`${gateway.listenUrl}${PATH}`, { body: chat(600) });
  const isNew = ({ calls }: FakeUpstream, i: number): boolean => calls.length !== before[i];
  await until(() => fakes.some(isNew));
  for (const fake of fakes) fake.behave(ok());
  const response = fakes.find(isNew)?.calls.at(-1)?.response;
  response?.write(tokenEvent(0));
  await client.receives(tokenEvent(0));
  return {
    client,
    async finish() {
      response?.end(FINISH_EVENT + DONE_EVENT);
      expect(await client.answer()).toMatchObject({ isWhole: true });
    },
  };
}

/** Sends a request that is to be held, as the `count`th of them. */
async function queue(gateway: TestGateway, body: object, count = 1): Promise<ClientCall> {
  const client = send(`${gateway.listenUrl}${PATH}`, { body });
  await until(() => heldIn(gateway) === count);
  return client;
}

describe.each([
  { kind: "streamed", isStreaming: true },
  { kind: "whole", isStreaming: false },
])("a $kind request that has to wait for room", ({ isStreaming }) => {
  it("is held, and sent as soon as there is room", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600, isStreaming));
    expect(e1.calls).toHaveLength(1);
    expect(await gateway.metric("evenkeel_endpoint_held_requests", { pool: "default", endpoint: "e1" })).toBe(1);
    await first.finish();
    const { status, headers } = await second.answer();
    expect([status, headers["x-evenkeel-endpoint"]]).toEqual([200, "e1"]);
    expect(headers["x-evenkeel-held-ms"]).toMatch(/^\d+$/);
    expect((await first.client.head()).headers["x-evenkeel-held-ms"]).toBeUndefined();
    expect(await gateway.metric("evenkeel_endpoint_held_requests")).toBe(0);
    expect(await gateway.metric("evenkeel_holds_total", { pool: "default" })).toBe(1);
    expect(await gateway.metric("evenkeel_hold_duration_seconds_count", { result: "sent" })).toBe(1);
    await expectIdle(gateway);
  });

  it("costs its endpoint nothing when its client leaves before", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600, isStreaming));
    second.abort();
    await until(() => heldIn(gateway) === 0);
    await until(async () => (await gateway.outcomes()).client_closed === 1);
    await first.finish();
    await expectIdle(gateway);
    expect(e1.calls).toHaveLength(1);
    expect(await gateway.metric("evenkeel_hold_duration_seconds_count", { result: "client_closed" })).toBe(1);
  });
});

describe("held requests", () => {
  it("go the short ones first, each when it fits", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const long = await queue(gateway, chat(900), 1);
    const short = await queue(gateway, chat(500), 2);
    e1.next(headThenHold);
    await first.finish();
    const { body, response } = await e1.call(1);
    expect(body.length).toBeLessThan(3000);
    expect(heldIn(gateway)).toBe(1);
    response.end(tokenEvent(0) + FINISH_EVENT + DONE_EVENT);
    expect(await short.answer()).toMatchObject({ isWhole: true });
    expect(await long.answer()).toMatchObject({ status: 200 });
    await expectIdle(gateway);
  });

  it("do not keep others from a room that is theirs no more", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const leaving = await queue(gateway, chat(500), 1);
    const staying = await queue(gateway, chat(700), 2);
    leaving.abort();
    await until(() => heldIn(gateway) === 1);
    await first.finish();
    expect(await staying.answer()).toMatchObject({ status: 200 });
    expect(e1.calls).toHaveLength(2);
    await expectIdle(gateway);
  });

  it("are refused once they have waited too long, and told when to come again", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1], {}, { maxWaitMs: 100 });
    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600));
    const { status, text, headers } = await second.answer();
    expect([status, JSON.parse(text)]).toMatchObject([429, { error: { code: "queue_timeout" } }]);
    expect([headers["x-evenkeel-reason"], headers["retry-after"]]).toEqual(["queue_timeout", "1"]);
    expect([heldIn(gateway), e1.calls.length]).toEqual([0, 1]);
    await first.finish();
    await expectIdle(gateway);
  });

  it("wait no longer than their clients say they do", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const headers = { "x-evenkeel-timeout-ms": "150" };
    const { status, text } = await send(`${gateway.listenUrl}${PATH}`, { body: chat(600), headers }).answer();
    expect([status, JSON.parse(text)]).toMatchObject([429, { error: { code: "queue_timeout" } }]);
    await first.finish();
    await expectIdle(gateway);
  });

  it("are refused beyond the bound of their number, and let go for more urgent ones", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1], {}, { maxRequests: 1 });
    const first = await run(gateway, e1);
    const low = { body: chat(600), headers: { "x-evenkeel-priority": "low" } };
    const shed = send(`${gateway.listenUrl}${PATH}`, low);
    await until(() => heldIn(gateway) === 1);
    const full = await send(`${gateway.listenUrl}${PATH}`, low).answer();
    expect([full.status, JSON.parse(full.text)]).toMatchObject([429, { error: { code: "queue_full" } }]);
    const normal = send(`${gateway.listenUrl}${PATH}`, { body: chat(600) });
    const { status, text, headers } = await shed.answer();
    expect([status, JSON.parse(text)]).toMatchObject([429, { error: { code: "shed" } }]);
    expect(headers["x-evenkeel-reason"]).toBe("shed");
    await first.finish();
    expect(await normal.answer()).toMatchObject({ status: 200 });
    await expectIdle(gateway);
  });

  it("are so many at most, and none if the bound is 0", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1], {}, { maxRequests: 0 });
    const first = await run(gateway, e1);
    const second = send(`${gateway.listenUrl}${PATH}`, { body: chat(600) });
    expect(await second.answer()).toMatchObject({ status: 200 });
    expect(await gateway.metric("evenkeel_holds_total")).toBe(0);
    await first.finish();
  });

  it("have bodies of so many bytes together at most", async () => {
    const e1 = await startFake();
    const body = chat(600);
    const maxBytes = 2 * Buffer.byteLength(JSON.stringify(body)) - 1;
    const gateway = await startSmall([e1], {}, { maxBytes });
    const first = await run(gateway, e1);
    const leaving = await queue(gateway, body);
    leaving.abort();
    await until(() => heldIn(gateway) === 0);
    await queue(gateway, body);
    const { status, text } = await send(`${gateway.listenUrl}${PATH}`, { body }).answer();
    expect([status, JSON.parse(text)]).toMatchObject([429, { error: { code: "queue_full" } }]);
    expect(heldIn(gateway)).toBe(1);
    await first.finish();
    await expectIdle(gateway);
  });

  it("wait for the first byte only from when they are sent", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1], { timeouts: { firstByteMs: 150 } });
    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600));
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(heldIn(gateway)).toBe(1);
    e1.next(hold);
    await first.finish();
    expect(await second.answer()).toMatchObject({ status: 504 });
    await expectIdle(gateway);
  });

  it("are answered to clients that have closed their sending side", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, chat(600)));
    await until(() => heldIn(gateway) === 1);
    client.socket.end();
    await client.receives(/100 Continue/);
    expect(heldIn(gateway)).toBe(1);
    await first.finish();
    await client.receives(/HTTP\/1\.1 200 OK[\s\S]*hello/);
    await expectIdle(gateway);
  });

  it("are foretold by /admin/explain", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const explain = async () => {
      const { json } = await callAdmin(gateway, "POST", "/admin/explain", { path: PATH, body: chat(600) });
      return json;
    };
    expect(await explain()).toMatchObject({ chosen: "e1", wouldHold: false });
    const first = await run(gateway, e1);
    expect(await explain()).toMatchObject({ chosen: "e1", wouldHold: true });
    await first.finish();
    await expectIdle(gateway);
  });

  it("show in the admin pages, the decision channel and the log", async () => {
    const e1 = await startFake();
    const logged: { msg: string; heldMs?: number }[] = [];
    const log = pino({ level: "debug" }, { write: (line: string) => void logged.push(JSON.parse(line)) });
    const endpoints = [testEndpoint("e1", e1.url, { kvCapacityTokens: 1000 })];
    const pool = { policy: { name: "least_delay", options: {} }, endpoints };
    const server = await startServer(testConfig([], { pool }), { log });
    onTestFinished(() => server.close());
    await until(() => server.runtime.isReady && server.runtime.directory.names.length > 0);
    const gateway = { ...server, admin: server.adminUrl ?? "" } as TestGateway;
    const told: DecisionMessage[] = [];
    const listener = (message: unknown): void => void told.push(message as DecisionMessage);
    subscribe(DECISION_CHANNEL, listener);
    onTestFinished(() => void unsubscribe(DECISION_CHANNEL, listener));

    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600));
    const page = (await (await fetch(`${gateway.admin}/admin/endpoints`)).json()) as object;
    expect(page).toMatchObject({
      pools: [{ heldRequests: 1, endpoints: [{ work: { requests: 1, heldRequests: 1 } }] }],
    });
    await first.finish();
    await second.answer();
    expect(told.map(({ decision }) => decision.kind)).toEqual(["routed", "held", "routed"]);
    expect(told.map(({ heldMs }) => heldMs)).toEqual([undefined, undefined, expect.any(Number)]);
    expect(told[2]?.requestId).toBe(told[1]?.requestId);
    await until(() => logged.filter(({ msg }) => msg === "request ended").length === 2);
    const heldMs = logged.filter(({ msg }) => msg === "request ended").map((line) => line.heldMs);
    expect(heldMs).toEqual([undefined, expect.any(Number)]);
  });
});

describe("an endpoint that goes while requests are held for it", () => {
  it("leaves them to the others, where they wait for room as well", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const gateway = await startSmall([e1, e2]);
    const streams = [await run(gateway, e1, e2), await run(gateway, e1, e2)];
    expect([e1.calls.length, e2.calls.length]).toEqual([1, 1]);
    const waiting = await queue(gateway, chat(600));
    const heads = await Promise.all(streams.map(({ client }) => client.head()));
    const first = heads[0]?.headers["x-evenkeel-endpoint"] === "e1" ? 0 : 1;
    e1.onProbe = (_request, response) => void response.writeHead(500).end();
    await until(() => gateway.runtime.pools[0]?.balancer.members[0]?.availability === "down");
    await streams[first]?.finish();
    expect(heldIn(gateway)).toBe(1);
    await streams[1 - first]?.finish();
    expect(await waiting.answer()).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e2" } });
    await expectIdle(gateway);
  });

  it("is found dead by them if it just died", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600));
    await e1.kill();
    expect(await first.client.answer()).toMatchObject({ isWhole: false });
    expect(await second.answer()).toMatchObject({ status: 502 });
    await expectIdle(gateway);
  });

  it("has them refused if it was the last", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1]);
    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600));
    e1.onProbe = (_request, response) => void response.writeHead(500).end();
    const { status, text } = await second.answer();
    expect([status, JSON.parse(text)]).toMatchObject([503, { error: { code: "no_available_endpoint" } }]);
    expect(await gateway.metric("evenkeel_hold_duration_seconds_count", { result: "refused" })).toBe(1);
    expect(e1.calls).toHaveLength(1);
    await first.finish();
    await expectIdle(gateway);
  });
});

describe("closing", () => {
  it("lets held requests go on", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1], { timeouts: { drainMs: 5_000 } });
    const first = await run(gateway, e1);
    const second = await queue(gateway, chat(600));
    const closed = gateway.close();
    await until(() => gateway.runtime.isDraining);
    await first.finish();
    expect(await second.answer()).toMatchObject({ status: 200, headers: { connection: "close" } });
    await closed;
  });

  it("tells held requests when time is up, cuts the others, and sends none of them", async () => {
    const e1 = await startFake();
    const gateway = await startSmall([e1], { timeouts: { drainMs: 500 } });
    const { client } = await run(gateway, e1);
    const second = await queue(gateway, chat(600));
    const answers = Promise.all([client.answer(), second.answer()]);
    await gateway.close();
    const [cut, told] = await answers;
    expect(cut).toMatchObject({ isWhole: false });
    expect([told.status, JSON.parse(told.text)]).toMatchObject([503, { error: { code: "shutting_down" } }]);
    expect(told.headers["retry-after"]).toMatch(/^\d+$/);
    expect(e1.calls).toHaveLength(1);
    const { account } = gateway.runtime.pools[0]?.balancer.members[0] ?? {};
    expect([account?.requests, heldIn(gateway)]).toEqual([0, 0]);
  });
});
