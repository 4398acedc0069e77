import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  type Behaviour,
  code,
  DONE_EVENT,
  FINISH_EVENT,
  headThenHold,
  hold,
  ok,
  rstAt,
  sse,
  stream,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, STREAMED_CHAT, send } from "../support/http-client.ts";
import { startOrdered } from "../support/ordered-pool.ts";
import { expectIdle } from "../support/test-gateway.ts";

const COMMENT = ":\n\n";
const beating = (opensEarly: boolean) => ({ streams: { heartbeatMs: 200, opensEarly } });
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Head, silence, half an event, silence, the other half, and the rest. */
const halves: Behaviour = async ({ response }) => {
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  await wait(700);
  const event = tokenEvent(0);
  response.write(event.slice(0, 20));
  await wait(700);
  response.end(event.slice(20) + FINISH_EVENT + DONE_EVENT);
};

describe("a silent stream", () => {
  it("carries comments between its events and none inside one", async () => {
    const gateway = await startOrdered([halves], { ...beating(false), failover: { guardMs: undefined } });
    const { text } = await gateway.chat(STREAMED_CHAT);
    const [before = ""] = text.split("data:", 1);
    expect(before).toMatch(/^(:\n\n)+$/);
    expect(text.replaceAll(COMMENT, "")).toBe(tokenEvent(0) + FINISH_EVENT + DONE_EVENT);
    expect(text.slice(before.length)).not.toContain(COMMENT);
  });

  it("measures its first token, not a comment", async () => {
    const gateway = await startOrdered([halves], { ...beating(true), failover: { guardMs: undefined } });
    await gateway.chat(STREAMED_CHAT);
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_sum")).toBeGreaterThan(1);
  });

  it("is left alone unless it is asked for", async () => {
    const gateway = await startOrdered([halves]);
    expect((await gateway.chat(STREAMED_CHAT)).text).toBe(tokenEvent(0) + FINISH_EVENT + DONE_EVENT);
  });

  it("runs into its limits all the same", async () => {
    const timeouts = { firstByteMs: 800 };
    const gateway = await startOrdered([headThenHold], { ...beating(false), timeouts, failover: { guardMs: 50 } });
    const { text, isWhole } = await gateway.chat(STREAMED_CHAT);
    expect(text).toContain(COMMENT);
    expect(text).toContain("upstream_timeout");
    expect(isWhole).toBe(false);
    await expectIdle(gateway);
  });
});

describe("a stream that no endpoint has begun", () => {
  it("stays closed, so that its failure has a status and another endpoint may begin it", async () => {
    const gateway = await startOrdered([hold, sse(1)], {
      ...beating(false),
      timeouts: { firstByteMs: 700 },
      failover: { slowResends: 1 },
    });
    const { status, text, headers } = await gateway.chat(STREAMED_CHAT);
    expect(status).toBe(200);
    expect(headers["x-evenkeel-endpoint"]).toBe("e2");
    expect(text).not.toContain(COMMENT);
  });

  it("is opened with comments where that is wished for, and another endpoint may still begin it", async () => {
    const gateway = await startOrdered([hold, sse(2)], {
      ...beating(true),
      timeouts: { firstByteMs: 700 },
      failover: { slowResends: 1 },
    });
    const { status, text, headers, isWhole } = await gateway.chat(STREAMED_CHAT);
    expect(status).toBe(200);
    expect(headers["content-type"]).toContain("text/event-stream");
    expect(headers["x-request-id"]).toBeDefined();
    expect(text).toMatch(/^(:\n\n)+data:/);
    expect(text.replaceAll(COMMENT, "")).toBe(tokenEvent(0) + tokenEvent(1) + FINISH_EVENT + DONE_EVENT);
    expect(isWhole).toBe(true);
    expect(gateway.hits()).toEqual([1, 1]);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
    await expectIdle(gateway);
  });

  it.each<{ what: string; behaviour: Behaviour; outcome: string }>([
    { what: "never answers", behaviour: hold, outcome: "upstream_timeout" },
    {
      what: "answers with an error",
      behaviour: (call) => void setTimeout(() => code(400, { error: { message: "no" } })(call), 400),
      outcome: "upstream_4xx",
    },
    {
      what: "answers with no stream",
      behaviour: (call) => void setTimeout(() => ok()(call), 400),
      outcome: "in_band_error",
    },
    {
      what: "answers with a stream that is compressed",
      behaviour: (call) =>
        void setTimeout(() => stream(gzipSync(DONE_EVENT), { "content-encoding": "gzip" })(call), 400),
      outcome: "in_band_error",
    },
    { what: "breaks off", behaviour: (call) => void setTimeout(() => rstAt(0)(call), 400), outcome: "upstream_error" },
  ])("once open tells its failure inside, and never ends like a whole one, when its endpoint $what", async (one) => {
    const timeouts = { firstByteMs: 900 };
    const gateway = await startOrdered([one.behaviour], { ...beating(true), timeouts });
    const { status, text, isWhole } = await gateway.chat(STREAMED_CHAT);
    expect(status).toBe(200);
    expect(text).toMatch(/^(:\n\n)+data: \{"error":/);
    expect(text).not.toContain("[DONE]");
    expect(isWhole).toBe(false);
    expect(await gateway.outcomes()).toEqual({ [one.outcome]: 1 });
    await expectIdle(gateway);
  });

  it("is not opened for an answer that is not streamed", async () => {
    const late: Behaviour = (call) => void setTimeout(() => ok()(call), 600);
    const gateway = await startOrdered([late], beating(true));
    const { text, status } = await gateway.chat(CHAT);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ object: "chat.completion" });
  });

  it("is given up when its client leaves", async () => {
    const gateway = await startOrdered([hold], beating(true));
    const client = send(`${gateway.listenUrl}/v1/chat/completions`, { body: STREAMED_CHAT });
    await wait(500);
    client.abort();
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });
});
