import { describe, expect, it, vi } from "vitest";
import type { LiveBalancer } from "../../src/runtime/index.ts";
import {
  type Behaviour,
  chatEvent,
  code,
  DONE_EVENT,
  FINISH_EVENT,
  headThenHold,
  ok,
  startFake,
  stream,
  tokenEvent,
  USAGE_EVENT,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { SAMPLE_STREAMS } from "../support/sample-streams.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";

/** An engine that reports usage at the end of a stream when it is asked to, and only then. */
const obedient: Behaviour = (call) => {
  const asks = JSON.parse(call.body.toString()).stream_options?.include_usage === true;
  stream(tokenEvent(0) + FINISH_EVENT + (asks ? USAGE_EVENT : "") + DONE_EVENT)(call);
};
const WITHOUT_USAGE = tokenEvent(0) + FINISH_EVENT + DONE_EVENT;
const WITH_USAGE = tokenEvent(0) + FINISH_EVENT + USAGE_EVENT + DONE_EVENT;

describe("usage in a stream", () => {
  it.each([
    { what: "no stream options", options: {}, seen: WITHOUT_USAGE, isCounted: true },
    { what: "empty ones", options: { stream_options: {} }, seen: WITHOUT_USAGE, isCounted: true },
    { what: "null", options: { stream_options: null }, seen: WITHOUT_USAGE, isCounted: true },
    {
      what: "others",
      options: { stream_options: { include_obfuscation: false } },
      seen: WITHOUT_USAGE,
      isCounted: true,
    },
    { what: "a yes", options: { stream_options: { include_usage: true } }, seen: WITH_USAGE, isCounted: true },
    { what: "a no", options: { stream_options: { include_usage: false } }, seen: WITHOUT_USAGE, isCounted: false },
  ])("reaches only a client that asked: with $what", async ({ options, seen, isCounted }) => {
    const e1 = await startFake(obedient);
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: { ...STREAMED_CHAT, ...options } });
    expect(answer).toMatchObject({ text: seen, isWhole: true });
    expect(await gateway.metric("evenkeel_prompt_tokens_total")).toBe(isCounted ? 7 : 0);
    // Without usage, what was seen to pass counts.
    expect(await gateway.metric("evenkeel_output_tokens_total")).toBe(isCounted ? 3 : 1);
  });

  it.each(SAMPLE_STREAMS)("as $name sends it is removed alone", async ({ path, body, events, usage, usageEvent }) => {
    const e1 = await startFake(stream(events.join("")));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${path}`, { body });
    expect(answer).toMatchObject({ text: events.filter((event) => event !== usageEvent).join(""), isWhole: true });
    expect(await gateway.metric("evenkeel_prompt_tokens_total")).toBe(usage?.prompt);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it.each([
    { path: PATH, usage: { prompt_tokens: 9, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } } },
    { path: "/v1/responses", usage: { input_tokens: 9, output_tokens: 3, input_tokens_details: { cached_tokens: 4 } } },
    { path: "/v1/messages", usage: { input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 4 } },
  ])("tells the balancer of cached tokens on $path", async ({ path, usage }) => {
    const e1 = await startFake(code(200, JSON.stringify({ usage })));
    const gateway = await startGateway([e1]);
    const finish = vi.spyOn(gateway.runtime.pools[0]?.balancer as LiveBalancer, "finish");
    await exchange(`${gateway.listenUrl}${path}`, { body: CHAT });
    expect(finish.mock.calls.map(([, outcome]) => outcome)).toEqual([
      { kind: "completed", promptTokens: 9, cachedTokens: 4, outputTokens: 3 },
    ]);
  });

  it("is removed wherever reads cut it", async () => {
    const at = WITH_USAGE.indexOf(USAGE_EVENT) + 40;
    const parts = [WITH_USAGE.slice(0, at), WITH_USAGE.slice(at, at + 10), WITH_USAGE.slice(at + 10)];
    const e1 = await startFake(async ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream", "content-length": WITH_USAGE.length });
      for (const part of parts) {
        response.write(part);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      response.end();
    });
    const gateway = await startGateway([e1]);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT })).toMatchObject({
      text: WITHOUT_USAGE,
      isWhole: true,
    });
  });

  it.each([
    { what: "not streamed", body: CHAT },
    { what: "streamed: false", body: { ...CHAT, stream: false } },
    { what: 'streamed: "true"', body: { ...CHAT, stream: "true" } },
    { what: "streamed: 1", body: { ...CHAT, stream: 1 } },
  ])("is not asked for in a request that is $what", async ({ body }) => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    await exchange(`${gateway.listenUrl}${PATH}`, { body });
    expect((await e1.call(0)).body.toString()).toBe(JSON.stringify(body));
    // A whole answer says it unasked.
    expect(await gateway.metric("evenkeel_prompt_tokens_total")).toBe(7);
    expect(await gateway.metric("evenkeel_output_tokens_total")).toBe(3);
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_count")).toBe(0);
  });

  it.each(["/v1/responses", "/v1/messages"])("is not asked for on %s", async (path) => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const body = { ...STREAMED_CHAT, input: "hi", max_tokens: 5 };
    await exchange(`${gateway.listenUrl}${path}`, { body });
    expect((await e1.call(0)).body.toString()).toBe(JSON.stringify(body));
  });
});

describe("usage in the middle of a stream", () => {
  const chatUsage = (completion_tokens: number): string =>
    chatEvent({
      choices: [{ index: 0, delta: { content: "a b c" }, finish_reason: null }],
      usage: { prompt_tokens: 7, completion_tokens },
    });
  const messagesEvent = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const delta = messagesEvent("content_block_delta", { index: 0, delta: { type: "text_delta", text: "a" } });
  const messagesUsage = (output_tokens: number): string =>
    messagesEvent("message_delta", { delta: {}, usage: { output_tokens } });

  it.each([
    { what: "of a chunk that holds several tokens", path: PATH, first: tokenEvent(0), next: chatUsage(9), moved: 8 },
    { what: "of fewer tokens than were seen", path: PATH, first: tokenEvent(0), next: chatUsage(1), moved: 1 },
    { what: "of no whole number", path: PATH, first: tokenEvent(0), next: chatUsage(9.5), moved: 1 },
    { what: "of Anthropic's", path: "/v1/messages", first: delta, next: delta + messagesUsage(9), moved: 8 },
  ])("moves the ledger: $what", async ({ path, first, next, moved }) => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${path}`, { body: { ...STREAMED_CHAT, max_tokens: 100 } });
    const account = gateway.runtime.pools[0]?.balancer.members[0]?.account;
    const { response } = await e1.call(0);
    response.write(first);
    await client.receives(first);
    const before = account?.contextTokens ?? 0;
    response.write(next);
    await client.receives(next);
    expect(account?.contextTokens).toBe(before + moved);
    client.abort();
    await expectIdle(gateway);
  });
});

describe("an engine that refuses the option", () => {
  const refusal = { error: { message: "Unrecognized field: stream_options", code: 400 } };
  const strict: Behaviour = (call) => {
    if (call.body.includes("stream_options")) code(400, refusal)(call);
    else stream(WITHOUT_USAGE)(call);
  };

  it("is asked once without it, and not bothered again", async () => {
    const e1 = await startFake(strict);
    const gateway = await startGateway([e1]);
    for (let i = 0; i < 3; i++) {
      const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
      expect(answer).toMatchObject({ status: 200, text: WITHOUT_USAGE, isWhole: true });
    }
    expect(e1.calls.map(({ body }) => body.includes("stream_options"))).toEqual([true, false, false, false]);
    expect(e1.calls[1]?.body.toString()).toBe(JSON.stringify(STREAMED_CHAT));
    expect(await gateway.outcomes()).toEqual({ ok: 3 });
  });

  it("with 422, as web frameworks do, is asked without it too", async () => {
    const e1 = await startFake();
    e1.next(code(422, { detail: [{ loc: ["body", "stream_options"], msg: "extra fields not permitted" }] }));
    e1.behave(strict);
    const gateway = await startGateway([e1]);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT })).toMatchObject({ status: 200 });
  });

  it("has its refusal passed on to a client that set the option itself", async () => {
    const e1 = await startFake(strict);
    const gateway = await startGateway([e1]);
    const body = { ...STREAMED_CHAT, stream_options: { include_usage: true } };
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body })).toMatchObject({
      status: 400,
      text: JSON.stringify(refusal),
    });
    expect(e1.calls).toHaveLength(1);
  });

  it("for another reason has its refusal passed on as it came", async () => {
    const e1 = await startFake(code(400, { error: { message: "too long" } }, { "x-reason": "length" }));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 400, text: '{"error":{"message":"too long"}}', isWhole: true });
    expect(answer.headers["x-reason"]).toBe("length");
    expect(e1.calls).toHaveLength(1);
    expect(await gateway.outcomes()).toEqual({ upstream_4xx: 1 });
  });

  it("at great length has all of it passed on", async () => {
    const long = JSON.stringify({ error: "x".repeat(300_000) });
    const e1 = await startFake(code(400, long));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 400, text: long, isWhole: true });
  });
});
