import { describe, expect, it } from "vitest";
import {
  type Behaviour,
  chatEvent,
  DONE_EVENT,
  FINISH_EVENT,
  finAt,
  headThenHold,
  hold,
  ok,
  raw,
  rstAt,
  sse,
  startFake,
  stream,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { SAMPLE_STREAMS } from "../support/sample-streams.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";
const THREE_EVENTS = tokenEvent(0) + tokenEvent(1) + tokenEvent(2);

const ROLE_EVENT = chatEvent({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] });

/** An opening, events and then silence, with or without comments. */
function stall(events: number, commentEveryMs?: number, opening = ""): Behaviour {
  return ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(opening);
    for (let i = 0; i < events; i++) response.write(tokenEvent(i));
    if (commentEveryMs === undefined) return;
    const timer = setInterval(() => response.write(": still here\n\n"), commentEveryMs);
    response.on("close", () => clearInterval(timer));
  };
}

/** What a chat client is told of before its connection breaks. */
const errorEventOf = (text: string): { error?: { code: string; type: string; message: string } } =>
  JSON.parse(text.slice(text.lastIndexOf("data: ") + 6));

describe("a stream that breaks", () => {
  it.each([
    { what: "is reset", behaviour: rstAt(3) },
    { what: "is closed inside its chunked framing", behaviour: finAt(3) },
    { what: "ends well, but without end mark and finish reason", behaviour: stream(THREE_EVENTS) },
    {
      what: "is closed 10 bytes short of its length",
      behaviour: ({ response, socket }: Parameters<Behaviour>[0]) => {
        const length = THREE_EVENTS.length + 10;
        response.writeHead(200, { "content-type": "text/event-stream", "content-length": length });
        response.write(THREE_EVENTS, () => socket.destroy());
      },
    },
    {
      what: "has a chunk of impossible size",
      behaviour: raw(
        `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n` +
          `${THREE_EVENTS.length.toString(16)}\r\n${THREE_EVENTS}\r\nzz\r\n`,
      ),
    },
  ])("because it $what tells the client, breaks and counts as truncated", async ({ behaviour }) => {
    const e1 = await startFake(behaviour);
    const e2 = await startFake(sse(1));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 200, isWhole: false });
    expect(answer.text.startsWith(THREE_EVENTS)).toBe(true);
    expect(answer.text).not.toContain("[DONE]");
    expect(errorEventOf(answer.text).error).toMatchObject({ type: "server_error", code: "upstream_error" });
    expect(await gateway.outcomes()).toEqual({ truncated: 1 });
    expect(e1.calls.length + e2.calls.length).toBe(1);
    await expectIdle(gateway);
  });

  it.each([
    { what: "after two events ends at the idle limit", behaviour: stall(2), timeouts: { idleMs: 150 } },
    { what: "with nothing but comments ends there too", behaviour: stall(2, 20), timeouts: { idleMs: 150 } },
  ])("because it falls silent $what", async ({ behaviour, timeouts }) => {
    const e1 = await startFake(behaviour);
    const gateway = await startGateway([e1], { timeouts });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 200, isWhole: false });
    expect(errorEventOf(answer.text).error).toMatchObject({ type: "server_error", code: "upstream_timeout" });
    expect(await gateway.outcomes()).toEqual({ stalled: 1 });
    await expectIdle(gateway);
  });

  it.each([
    { what: "its head", behaviour: headThenHold, failover: { guardMs: undefined } },
    { what: "a role and comments", behaviour: stall(0, 20, ROLE_EVENT), failover: {} },
  ])("because no token follows $what ends at the limit for that", async ({ behaviour, failover }) => {
    const e1 = await startFake(behaviour);
    const gateway = await startGateway([e1], { timeouts: { firstByteMs: 150 }, failover });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 200, isWhole: false });
    expect(errorEventOf(answer.text).error).toMatchObject({ type: "server_error", code: "upstream_timeout" });
    expect(await gateway.outcomes()).toEqual({ upstream_timeout: 1 });
    await expectIdle(gateway);
  });

  it("because no event follows its head, and the client has not seen that, is a 504", async () => {
    const e1 = await startFake(stall(0, 20));
    const gateway = await startGateway([e1], { timeouts: { firstByteMs: 150 } });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 504, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ upstream_timeout: 1 });
    await expectIdle(gateway);
  });

  it.each([
    { what: "right after its head", opening: "" },
    { what: "after an event with a role alone", opening: ROLE_EVENT },
    { what: "after a ping", opening: ": ping\n\n" },
  ])("does not end while its prompt is computed, silent $what for longer than the idle limit", async ({ opening }) => {
    const e1 = await startFake(({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      response.write(opening);
      setTimeout(() => response.end(tokenEvent(0) + FINISH_EVENT + DONE_EVENT), 450);
    });
    const gateway = await startGateway([e1], { timeouts: { idleMs: 100 } });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT })).toMatchObject({ isWhole: true });
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("does not end while events keep coming, however long it takes in all", async () => {
    const e1 = await startFake(sse(12, 50));
    const gateway = await startGateway([e1], { timeouts: { idleMs: 250, firstByteMs: 250 } });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ isWhole: true });
    expect(answer.text).toContain(DONE_EVENT);
  });

  it("inside an event gets no event put in", async () => {
    const half = THREE_EVENTS + tokenEvent(3).slice(0, 20);
    const e1 = await startFake(({ response, socket }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(half, () => socket.destroy());
    });
    const gateway = await startGateway([e1]);
    const body = { ...STREAMED_CHAT, stream_options: { include_usage: true } };
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body })).toMatchObject({ text: half, isWhole: false });
    expect(await gateway.outcomes()).toEqual({ truncated: 1 });
  });

  it.each(SAMPLE_STREAMS)("speaks the dialect of $name", async ({ path, body, events }) => {
    const e1 = await startFake(({ response, socket }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(events[0], () => socket.destroy());
    });
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${path}`, { body });
    expect(answer.isWhole).toBe(false);
    const told = answer.text.slice((events[0] as string).length);
    const data = JSON.parse(told.slice(told.indexOf("data: ") + 6));
    const message = expect.stringMatching(/broke in the middle/);
    if (path === "/v1/messages") {
      expect(told).toMatch(/^event: error\ndata: /);
      const request_id = answer.headers["request-id"];
      expect(data).toEqual({ type: "error", error: { type: "api_error", message }, request_id });
    } else if (path === "/v1/responses") {
      expect(told).toMatch(/^event: error\ndata: /);
      expect(data).toMatchObject({ type: "error", code: "upstream_error", message, param: null });
    } else {
      expect(told).toMatch(/^data: /);
      expect(data).toEqual({ error: { type: "server_error", code: "upstream_error", message, param: null } });
    }
  });

  it("is reset for an HTTP/1.0 client, to whom a closed connection is the end of the body", async () => {
    const e1 = await startFake(rstAt(2));
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl);
    const failed = new Promise<NodeJS.ErrnoException>((resolve) => client.socket.once("error", resolve));
    client.write(rawPost(PATH, STREAMED_CHAT, { version: "1.0" }));
    expect((await failed).code).toBe("ECONNRESET");
  });
});

describe("an answer that is not streamed and breaks", () => {
  it.each([
    {
      what: "is closed 10 bytes short of its length",
      behaviour: ({ response, socket }: Parameters<Behaviour>[0]) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": 20 });
        response.write('{"half":1,', () => socket.destroy());
      },
    },
    {
      what: "is reset inside its chunked framing",
      behaviour: ({ response, socket }: Parameters<Behaviour>[0]) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.write('{"half":1,', () => socket.resetAndDestroy());
      },
    },
    {
      what: "ends with its connection, by which nothing tells its end,",
      behaviour: raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"half":1,'),
    },
    {
      what: "is of HTTP/1.0, where nothing tells its end,",
      behaviour: raw('HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"half":1,'),
    },
  ])("because it $what breaks for the client too", async ({ behaviour }) => {
    const e1 = await startFake(behaviour);
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(answer).toMatchObject({ status: 200, text: '{"half":1,', isWhole: false });
    expect(await gateway.outcomes()).toEqual({ truncated: 1 });
    await expectIdle(gateway);
  });

  it("passes if it ends with its connection and is whole all the same", async () => {
    const body = '{"whole":[1]}\n';
    const gateway = await startGateway([
      await startFake(raw(`HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n${body}`)),
    ]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(answer).toMatchObject({ status: 200, text: body, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("ends at the idle limit when it stops in the middle", async () => {
    const e1 = await startFake(({ response }) => void response.writeHead(200).write("{"));
    const gateway = await startGateway([e1], { timeouts: { idleMs: 100 } });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ text: "{", isWhole: false });
    expect(await gateway.outcomes()).toEqual({ stalled: 1 });
    await expectIdle(gateway);
  });

  it("after its head alone is a 504: nothing has reached the client", async () => {
    const e1 = await startFake(({ response }) => response.writeHead(200).flushHeaders());
    const gateway = await startGateway([e1], { timeouts: { idleMs: 100 } });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 504, isWhole: true });
    await expectIdle(gateway);
  });
});

describe("an error that an engine sends inside a stream", () => {
  const error = 'data: {"error":{"message":"engine died","type":"InternalServerError","code":500}}\n\n';

  it.each([
    { what: "with a clean end", text: tokenEvent(0) + error + DONE_EVENT },
    { what: "as the first event", text: error + DONE_EVENT },
    { what: "without an end mark", text: tokenEvent(0) + error },
  ])("$what passes unchanged and counts as an error", async ({ text }) => {
    const e1 = await startFake(stream(text));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 200, text, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ in_band_error: 1 });
    await expectIdle(gateway);
  });

  it("told by the finish reason of a whole answer counts as one too", async () => {
    const e1 = await startFake(ok({ choices: [{ index: 0, message: { content: "a" }, finish_reason: "abort" }] }));
    const gateway = await startGateway([e1]);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ in_band_error: 1 });
  });

  it.each(['""', "null"])("of %s is none", async (value) => {
    const event = chatEvent({ choices: [{ index: 0, delta: { content: "a" } }] }).replace("{", `{"error":${value},`);
    const e1 = await startFake(stream(event + FINISH_EVENT + DONE_EVENT));
    const gateway = await startGateway([e1]);
    await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });
});

describe("an answer that is no HTTP", () => {
  it.each([
    { what: "an invalid status line", bytes: "HTTP/1.1 abc OK\r\n\r\n" },
    { what: "a NUL in a header", bytes: "HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\n" },
    { what: "a head of a megabyte", bytes: `HTTP/1.1 200 OK\r\nX-A: ${"a".repeat(1_000_000)}\r\n\r\n` },
    { what: "nothing at all", bytes: "" },
    { what: "another protocol", bytes: "SSH-2.0-OpenSSH_9.6\r\n" },
  ])("but $what is a 502, and other requests do not notice", async ({ bytes }) => {
    const e1 = await startFake(hold);
    e1.next(hold, raw(bytes));
    const gateway = await startGateway([e1]);
    const other = send(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    const call = await e1.call(0);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.text).error).toMatchObject({ type: "server_error", code: "upstream_error" });
    ok()(call);
    expect(await other.answer()).toMatchObject({ status: 200 });
    expect(e1.calls).toHaveLength(2);
    await expectIdle(gateway);
  });
});
