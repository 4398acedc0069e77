import { describe, expect, it } from "vitest";
import {
  type Behaviour,
  chatEvent,
  code,
  DONE_EVENT,
  FINISH_EVENT,
  finAt,
  headThenHold,
  rstAt,
  sse,
  stream,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { startOrdered } from "../support/ordered-pool.ts";
import { expectIdle } from "../support/test-gateway.ts";

/** What `sse(1)` sends. */
const ONE_TOKEN = tokenEvent(0) + FINISH_EVENT + DONE_EVENT;
const ROLE_EVENT = chatEvent({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] });
const errorEvent = (status: number | string): string =>
  `data: ${JSON.stringify({ error: { message: "no", type: "x", code: status } })}\n\n`;

/** How vLLM ends its streams when its engine has died. */
const DYING = tokenEvent(0) + errorEvent(500) + DONE_EVENT;

/** Sends each text as a piece of its own. */
function pieces(...texts: readonly string[]): Behaviour {
  return async ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    for (const text of texts) {
      response.write(text);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    response.end();
  };
}

describe("a stream that fails before its first event", () => {
  it.each<{ what: string; behaviour: Behaviour }>([
    { what: "is reset after its head", behaviour: rstAt(0) },
    { what: "is closed after its head", behaviour: finAt(0) },
    { what: "ends after its head as if it were whole", behaviour: stream("") },
    { what: "ends after a comment", behaviour: stream(": ping\n\n") },
    { what: "tells of overload", behaviour: stream(errorEvent(503) + DONE_EVENT) },
    { what: "tells of a limit", behaviour: stream(errorEvent(429)) },
    { what: "tells of its engine's death", behaviour: stream(errorEvent(500) + DONE_EVENT) },
    { what: "tells of overload in words", behaviour: stream(errorEvent("overloaded_error")) },
    { what: "tells of overload in pieces", behaviour: pieces(errorEvent(503).slice(0, 20), errorEvent(503).slice(20)) },
    { what: "tells of overload after comments", behaviour: pieces(": ping\n\n", ": ping\n\n", errorEvent(503)) },
    { what: "tells of overload without a blank line", behaviour: stream(errorEvent(503).trimEnd()) },
  ])("because it $what is begun again elsewhere, and the client sees nothing of it", async ({ behaviour }) => {
    const gateway = await startOrdered([behaviour, sse(1)]);
    const answer = await gateway.chat(STREAMED_CHAT);
    expect(answer).toMatchObject({ status: 200, text: ONE_TOKEN, isWhole: true });
    expect(answer.headers["x-evenkeel-endpoint"]).toBe("e2");
    expect(gateway.hits()).toEqual([1, 1]);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
    expect(await gateway.metric("evenkeel_guarded_failures_total")).toBe(1);
    await expectIdle(gateway);
  });

  it("is told in the dialect of its API", async () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const gateway = await startOrdered([stream(`event: error\ndata: ${JSON.stringify(error)}\n\n`), sse(1)]);
    const body = { ...STREAMED_CHAT, max_tokens: 5 };
    const answer = await exchange(`${gateway.listenUrl}/v1/messages`, { body });
    expect(answer.headers["x-evenkeel-endpoint"]).toBe("e2");
    expect(gateway.hits()).toEqual([1, 1]);
  });

  it("passes as it is when no other endpoint does better", async () => {
    const [first, second] = [errorEvent(503) + DONE_EVENT, errorEvent(429) + DONE_EVENT];
    const gateway = await startOrdered([stream(first), stream(second)]);
    const answer = await gateway.chat(STREAMED_CHAT);
    expect(answer).toMatchObject({ status: 200, text: second, isWhole: true });
    expect(answer.headers["x-evenkeel-endpoint"]).toBe("e2");
    expect(await gateway.outcomes()).toEqual({ in_band_error: 1 });
    await expectIdle(gateway);
  });

  it("is what the client gets when the other endpoint gives no answer at all", async () => {
    const text = errorEvent(503) + DONE_EVENT;
    const gateway = await startOrdered([stream(text), ({ socket }) => void socket.resetAndDestroy()]);
    const answer = await gateway.chat(STREAMED_CHAT);
    expect(answer).toMatchObject({ status: 200, text, headers: { "x-evenkeel-endpoint": "e1" } });
    expect(await gateway.outcomes()).toEqual({ in_band_error: 1 });
    expect(await gateway.metric("evenkeel_requests_total", { endpoint: "e1" })).toBe(1);
    await expectIdle(gateway);
  });

  it("with nothing sent is a 502 of the balancer's own, not half an answer", async () => {
    const gateway = await startOrdered([rstAt(0), rstAt(0)]);
    expect(await gateway.chat(STREAMED_CHAT)).toMatchObject({ status: 502, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ upstream_error: 1 });
  });

  it.each([
    { what: "the request is at fault", text: errorEvent(400) + DONE_EVENT },
    { what: "nobody says whose fault it is", text: errorEvent("E17") },
  ])("passes as it is, once, when $what", async ({ text }) => {
    const gateway = await startOrdered([stream(text), sse(1)]);
    const answer = await gateway.chat(STREAMED_CHAT);
    expect(answer).toMatchObject({ status: 200, text, isWhole: true, headers: { "x-evenkeel-endpoint": "e1" } });
    expect(gateway.hits()).toEqual([1, 0]);
    expect(await gateway.outcomes()).toEqual({ in_band_error: 1 });
  });

  it("because nothing but comments comes in time is begun again elsewhere", async () => {
    const commenting: Behaviour = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const timer = setInterval(() => response.write(": still here\n\n"), 20);
      response.on("close", () => clearInterval(timer));
    };
    const gateway = await startOrdered([commenting, sse(1)], {
      timeouts: { firstByteMs: 150 },
      failover: { slowResends: 1 },
    });
    expect(await gateway.chat(STREAMED_CHAT)).toMatchObject({ status: 200, text: ONE_TOKEN, isWhole: true });
    expect(await gateway.metric("evenkeel_attempts_failed_total", { endpoint: "e1", reason: "slow" })).toBe(1);
    await expectIdle(gateway);
  });

  it("over a connection that had been idle is not begun again at the same endpoint", async () => {
    const gateway = await startOrdered([sse(1), sse(1)]);
    const [e1] = gateway.fakes;
    await gateway.chat(STREAMED_CHAT);
    e1?.next(rstAt(0));
    expect(await gateway.chat(STREAMED_CHAT)).toMatchObject({ status: 200, text: ONE_TOKEN });
    expect(e1?.calls[1]?.socket).toBe(e1?.calls[0]?.socket);
    expect(gateway.hits()).toEqual([2, 1]);
  });
});

describe("a stream that has begun", () => {
  it.each([
    { what: "a token", text: tokenEvent(0) },
    { what: "a role alone", text: ROLE_EVENT },
  ])("with $what is not begun again: an error behind it passes", async ({ text }) => {
    const bytes = text + errorEvent(503) + DONE_EVENT;
    const gateway = await startOrdered([stream(bytes), sse(1)]);
    expect(await gateway.chat(STREAMED_CHAT)).toMatchObject({ status: 200, text: bytes, isWhole: true });
    expect(gateway.hits()).toEqual([1, 0]);
    expect(await gateway.outcomes()).toEqual({ in_band_error: 1 });
  });

  it.each([
    { what: "tells of its engine's death and ends as if all were well", behaviour: stream(DYING), isWhole: true },
    { what: "is reset", behaviour: rstAt(1), isWhole: false },
    { what: "is closed inside its framing", behaviour: finAt(1), isWhole: false },
    { what: "ends without an end", behaviour: stream(tokenEvent(0)), isWhole: false },
  ])("is the endpoint's failure if it $what", async ({ behaviour, isWhole }) => {
    const gateway = await startOrdered([behaviour, sse(1)], { ejection: { minRequests: 3 } });
    for (let i = 0; i < 3; i++) {
      const answer = await gateway.chat(STREAMED_CHAT);
      expect(answer).toMatchObject({ isWhole, headers: { "x-evenkeel-endpoint": "e1" } });
      expect(answer.text.startsWith(tokenEvent(0))).toBe(true);
    }
    expect(await gateway.chat(STREAMED_CHAT)).toMatchObject({ text: ONE_TOKEN });
    expect(gateway.hits()).toEqual([3, 1]);
    expect(await gateway.outcomes()).toEqual({ [isWhole ? "in_band_error" : "truncated"]: 3, ok: 1 });
  });
});

describe("the head of a stream", () => {
  it("waits for its first event only as long as it may", async () => {
    const gateway = await startOrdered([headThenHold, sse(1)], { failover: { guardMs: 50 } });
    const client = send(gateway.chatUrl, { body: STREAMED_CHAT });
    expect((await client.head()).statusCode).toBe(200);
    (await gateway.fakes[0]?.call(0))?.response.end(errorEvent(503) + DONE_EVENT);
    expect(await client.answer()).toMatchObject({ text: errorEvent(503) + DONE_EVENT });
    expect(gateway.hits()).toEqual([1, 0]);
    expect(await gateway.outcomes()).toEqual({ in_band_error: 1 });
  });

  it("goes out at once, with what comes before the first event, if it is not to wait", async () => {
    const gateway = await startOrdered([headThenHold, sse(1)], { failover: { guardMs: undefined } });
    const client = send(gateway.chatUrl, { body: STREAMED_CHAT });
    expect((await client.head()).headers["x-evenkeel-endpoint"]).toBe("e1");
    const call = await gateway.fakes[0]?.call(0);
    call?.response.write(": ping\n\n");
    await client.receives(": ping\n\n");
    call?.response.end(DONE_EVENT);
    await client.answer();
  });

  it("waits no longer once more has come than is kept", async () => {
    const comment = `: ${"x".repeat(70_000)}\n\n`;
    const gateway = await startOrdered([headThenHold, sse(1)], { failover: { guardMs: 60_000 } });
    const client = send(gateway.chatUrl, { body: STREAMED_CHAT });
    const call = await gateway.fakes[0]?.call(0);
    call?.response.write(comment);
    await client.receives(comment);
    call?.response.end(ONE_TOKEN);
    expect(await client.answer()).toMatchObject({ text: comment + ONE_TOKEN, isWhole: true });
  });

  it("goes out with so much behind it that the client has to catch up, and the stream goes on when it has", async () => {
    const comment = `: ${"x".repeat(60_000)}\n\n`;
    const gateway = await startOrdered([headThenHold], { failover: { guardMs: 50 }, timeouts: { idleMs: 500 } });
    const client = send(gateway.chatUrl, { body: STREAMED_CHAT });
    const call = await gateway.fakes[0]?.call(0);
    call?.response.write(comment);
    await client.receives(comment);
    for (let i = 0; i < 2; i++) {
      call?.response.write(tokenEvent(i));
      await client.receives(tokenEvent(i));
    }
    call?.response.end(FINISH_EVENT + DONE_EVENT);
    expect(await client.answer()).toMatchObject({ isWhole: true });
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("of a refusal with a body in events waits for nothing but its body", async () => {
    const gateway = await startOrdered([code(400, errorEvent(400), { "content-type": "text/event-stream" })]);
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 400, text: errorEvent(400), isWhole: true });
    expect(await gateway.outcomes()).toEqual({ upstream_4xx: 1 });
  });
});
