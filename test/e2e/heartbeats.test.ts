import { describe, expect, it } from "vitest";
import {
  type Behaviour,
  DONE_EVENT,
  FINISH_EVENT,
  headThenHold,
  hold,
  startFake,
  stream,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const HEARTBEAT = { heartbeatMs: 60, opensEarly: false };
const EARLY = { heartbeatMs: 60, opensEarly: true };
const NO_GUARD = { guardMs: undefined };
const REST = FINISH_EVENT + DONE_EVENT;

/** A stream without its comments. */
const eventsOf = (text: string): string => text.replace(/^:[^\n]*\n\n/gm, "");
const commentsIn = (text: string): number => text.match(/^:[^\n]*\n\n/gm)?.length ?? 0;

describe("a stream that is silent", () => {
  it("gets comments between its events, and none inside one", async () => {
    const half = tokenEvent(0).slice(0, 30);
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1], { streams: HEARTBEAT, failover: NO_GUARD });
    const body = { ...STREAMED_CHAT, stream_options: { include_usage: true } };
    const client = send(`${gateway.listenUrl}${PATH}`, { body });
    const { response } = await e1.call(0);
    await until(() => commentsIn(client.text) >= 3);
    response.write(half);
    await client.receives(half);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(client.text.endsWith(half)).toBe(true);
    response.write(tokenEvent(0).slice(30));
    const before = commentsIn(client.text);
    await until(() => commentsIn(client.text) >= before + 2);
    response.end(REST);
    const answer = await client.answer();
    expect(answer.isWhole).toBe(true);
    expect(eventsOf(answer.text)).toBe(tokenEvent(0) + REST);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
    await expectIdle(gateway);
  });

  it("has its first token timed by the token, not by a comment", async () => {
    const e1 = await startFake(({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      setTimeout(() => response.end(tokenEvent(0) + REST), 400);
    });
    const gateway = await startGateway([e1], { streams: HEARTBEAT, failover: NO_GUARD });
    const { text } = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(commentsIn(text)).toBeGreaterThanOrEqual(2);
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_sum")).toBeGreaterThan(0.35);
  });

  it("still ends at its limits, comments or not", async () => {
    const e1 = await startFake(({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(tokenEvent(0));
    });
    const gateway = await startGateway([e1], { streams: HEARTBEAT, timeouts: { idleMs: 300 } });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer.isWhole).toBe(false);
    expect(commentsIn(answer.text)).toBeGreaterThanOrEqual(2);
    expect(await gateway.outcomes()).toEqual({ stalled: 1 });
    await expectIdle(gateway);
  });

  it("gets none unless they are asked for, and no answer that is not streamed ever does", async () => {
    const late: Behaviour = ({ response }) => {
      response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
      setTimeout(() => response.end("{}"), 300);
    };
    const e1 = await startFake(late);
    const gateway = await startGateway([e1], { streams: EARLY });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200, text: "{}" });
    const plain = await startGateway([await startFake(headThenHold)], {
      timeouts: { firstByteMs: 300 },
      failover: NO_GUARD,
    });
    const { text } = await exchange(`${plain.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(commentsIn(text)).toBe(0);
  });
});

describe("an endpoint that never answers a stream", () => {
  const answers = stream(tokenEvent(0) + REST);

  it("is given up at the limit of the first byte, and the client sees another's stream alone", async () => {
    const fakes = [await startFake(hold), await startFake(hold)];
    const gateway = await startGateway(fakes, {
      streams: HEARTBEAT,
      timeouts: { firstByteMs: 300 },
      failover: { resends: 1 },
    });
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await until(() => fakes.some(({ calls }) => calls.length === 1));
    for (const fake of fakes) fake.behave(answers);
    const answer = await client.answer();
    expect(answer).toMatchObject({ status: 200, isWhole: true, text: tokenEvent(0) + REST });
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("has its place taken by another behind the comments, where the stream was opened early", async () => {
    const fakes = [await startFake(hold), await startFake(hold)];
    const gateway = await startGateway(fakes, {
      streams: EARLY,
      timeouts: { firstByteMs: 300 },
      failover: { resends: 1 },
    });
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await until(() => fakes.some(({ calls }) => calls.length === 1));
    for (const fake of fakes) fake.behave(answers);
    await until(() => commentsIn(client.text) >= 2);
    const answer = await client.answer();
    expect(answer).toMatchObject({ status: 200, isWhole: true });
    expect(answer.headers["content-type"]).toMatch(/^text\/event-stream/);
    expect(eventsOf(answer.text)).toBe(tokenEvent(0) + REST);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
    await expectIdle(gateway);
  });

  it("is told of inside the stream if that was opened early and no other does better", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], { streams: EARLY, timeouts: { firstByteMs: 250 } });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 200, isWhole: false });
    const told = eventsOf(answer.text);
    expect(JSON.parse(told.slice(told.indexOf("data: ") + 6)).error).toMatchObject({ code: "upstream_timeout" });
    expect(await gateway.outcomes()).toEqual({ upstream_timeout: 1 });
    await expectIdle(gateway);
  });
});
