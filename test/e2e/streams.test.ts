import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
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
import { exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { SAMPLE_STREAMS } from "../support/sample-streams.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const CHAT_PATH = "/v1/chat/completions";
/** Asks for usage itself, so that the balancer has nothing to remove. */
const ASKING_CHAT = { ...STREAMED_CHAT, stream_options: { include_usage: true } };

describe("a streamed answer", () => {
  it.each(SAMPLE_STREAMS)(
    "of $name passes byte for byte and is counted",
    async ({ path, body, events, usage, tokenEvents }) => {
      const e1 = await startFake(stream(events.join("")));
      const gateway = await startGateway([e1]);
      const asking = path.includes("completions") ? { ...body, stream_options: { include_usage: true } } : body;
      const answer = await exchange(`${gateway.listenUrl}${path}`, { body: asking });
      expect(answer).toMatchObject({ status: 200, text: events.join(""), isWhole: true });
      expect(answer.headers).toMatchObject({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
      expect(await gateway.outcomes()).toEqual({ ok: 1 });
      expect(await gateway.metric("evenkeel_prompt_tokens_total")).toBe(usage?.prompt);
      expect(await gateway.metric("evenkeel_output_tokens_total")).toBe(usage?.output ?? tokenEvents);
      expect(await gateway.metric("evenkeel_time_to_first_token_seconds_count")).toBe(1);
      await expectIdle(gateway);
    },
  );

  const LINES = `id: 1${"\n"}event: x\ndata:no space\n\n: a comment\n\nretry: 5\ndata: two\ndata: lines\n\n`;
  const FORMS: readonly { readonly what: string; readonly bytes: string }[] = [
    { what: "LF", bytes: LINES + tokenEvent(0) + FINISH_EVENT + DONE_EVENT },
    { what: "CRLF", bytes: (LINES + tokenEvent(0) + FINISH_EVENT + DONE_EVENT).replaceAll("\n", "\r\n") },
    { what: "CR", bytes: (LINES + tokenEvent(0) + FINISH_EVENT + DONE_EVENT).replaceAll("\n", "\r") },
    { what: "a byte-order mark", bytes: `\ufeff${tokenEvent(0)}${DONE_EVENT}` },
    { what: "no blank line at its end", bytes: `${tokenEvent(0)}${FINISH_EVENT}data: [DONE]` },
  ];

  it.each(FORMS)("with $what passes byte for byte, however it is cut", async ({ bytes }) => {
    const e1 = await startFake();
    e1.next(stream(bytes), byteByByte(bytes));
    const gateway = await startGateway([e1]);
    for (let i = 0; i < 2; i++) {
      const answer = await exchange(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT });
      expect(answer).toMatchObject({ text: bytes, isWhole: true });
    }
    expect(await gateway.outcomes()).toEqual({ ok: 2 });
  });

  it.each([
    { what: "asked for usage", body: ASKING_CHAT },
    { what: "did not", body: STREAMED_CHAT },
  ])("reaches a client that $what head first, then event by event as they come", async ({ body }) => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${CHAT_PATH}`, { body });
    await client.head();
    const call = await e1.call(0);
    for (let i = 0; i < 20; i++) {
      call.response.write(tokenEvent(i));
      await client.receives(tokenEvent(i));
    }
    call.response.end(DONE_EVENT);
    await client.receives(DONE_EVENT);
    expect(await client.answer()).toMatchObject({ isWhole: true });
  });

  it("passes half an event on at once where nothing is to be removed", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${CHAT_PATH}`, { body: ASKING_CHAT });
    const call = await e1.call(0);
    call.response.write(tokenEvent(0).slice(0, 30));
    await client.receives(tokenEvent(0).slice(0, 30));
    call.response.end(tokenEvent(0).slice(30) + DONE_EVENT);
    expect(await client.answer()).toMatchObject({ text: tokenEvent(0) + DONE_EVENT });
  });

  it("keeps an engine's own word on buffering", async () => {
    const e1 = await startFake(stream(DONE_EVENT, { "x-accel-buffering": "yes", "cache-control": "no-cache" }));
    const gateway = await startGateway([e1]);
    const { headers } = await exchange(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT });
    expect(headers).toMatchObject({ "x-accel-buffering": "yes", "cache-control": "no-cache" });
  });

  it("is asked for uncompressed, and passes untouched if it comes compressed", async () => {
    const bytes = gzipSync(tokenEvent(0) + DONE_EVENT);
    const e1 = await startFake(stream(bytes, { "content-encoding": "gzip" }));
    const gateway = await startGateway([e1]);
    const headers = { "accept-encoding": "gzip, br" };
    const answer = await exchange(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT, headers });
    expect((await e1.call(0)).headers["accept-encoding"]).toBe("identity");
    expect(answer.headers["content-encoding"]).toBe("gzip");
    expect(answer.body).toEqual(bytes);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("passes with an event larger than any buffer", async () => {
    const bytes = `data: ${"x".repeat(3_000_000)}\n\n${tokenEvent(1)}${DONE_EVENT}`;
    const e1 = await startFake(stream(bytes));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT });
    expect(answer.body.equals(Buffer.from(bytes))).toBe(true);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("shows in the ledger token by token", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    const account = gateway.runtime.pools[0]?.balancer.members[0]?.account;
    expect(account).toMatchObject({ requests: 1, waitingRequests: 1, runningRequests: 0, contextTokens: 0 });
    call.response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));
    expect(account).toMatchObject({ requests: 1, waitingRequests: 0, waitingPrefillTokens: 0, runningRequests: 1 });
    const held = account?.contextTokens ?? 0;
    call.response.write(tokenEvent(1) + tokenEvent(2));
    await client.receives(tokenEvent(2));
    expect(account?.contextTokens).toBe(held + 2);
    call.response.end(DONE_EVENT);
    await client.answer();
    await expectIdle(gateway);
  });
});

describe("a client that does not keep up", () => {
  const CHUNK = Buffer.from(
    `data: ${JSON.stringify({ choices: [{ delta: { content: "x".repeat(64 * 1024) } }] })}\n\n`,
  );
  const CHUNKS = 1_700;

  /** Sends as fast as it is let, about 110 MB, and says how many chunks were taken. */
  function flood(): { readonly behaviour: Behaviour; sent(): number } {
    let sent = 0;
    const behaviour: Behaviour = ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const more = (): void => {
        while (sent < CHUNKS) {
          sent++;
          if (!response.write(CHUNK)) {
            response.once("drain", more);
            return;
          }
        }
        response.end(DONE_EVENT);
      };
      more();
    };
    return { behaviour, sent: () => sent };
  }

  it("holds the endpoint back, and loses nothing", async () => {
    const { behaviour, sent } = flood();
    const e1 = await startFake(behaviour);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT, isPaused: true });
    const response = await client.head();
    await standsStill(sent);
    // What the kernel buffers of two connections hold, with room to spare.
    expect(sent() * CHUNK.length).toBeLessThan(40_000_000);
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of response) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    const expected = createHash("sha256");
    for (let i = 0; i < CHUNKS; i++) expected.update(CHUNK);
    expect(bytes).toBe(CHUNKS * CHUNK.length + DONE_EVENT.length);
    expect(hash.digest("hex")).toBe(expected.update(DONE_EVENT).digest("hex"));
    await expectIdle(gateway);
  });

  it("is dropped at the idle limit, which frees the endpoint", async () => {
    const { behaviour, sent } = flood();
    const e1 = await startFake(behaviour);
    const gateway = await startGateway([e1], { timeouts: { idleMs: 200 } });
    const client = send(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT, isPaused: true });
    await client.head();
    const call = await e1.call(0);
    await until(() => call.isAborted);
    expect(sent()).toBeLessThan(CHUNKS);
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ client_stalled: 1 });
    client.abort();
  });
});

describe("an answer that is not streamed", () => {
  it("passes in chunks or with its length as the endpoint sent it", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const plain = send(`${gateway.listenUrl}${CHAT_PATH}`, { body: { model: "m" } });
    (await e1.call(0)).response.writeHead(200, { "content-length": 5, "x-a": "1" }).end("hello");
    expect(await plain.answer()).toMatchObject({ text: "hello", headers: { "content-length": "5", "x-a": "1" } });
    const chunked = send(`${gateway.listenUrl}${CHAT_PATH}`, { body: { model: "m" } });
    const { response } = await e1.call(1);
    response.write("hel");
    await chunked.receives("hel");
    response.end("lo");
    expect(await chunked.answer()).toMatchObject({ text: "hello", headers: { "transfer-encoding": "chunked" } });
  });

  it("passes however large it is", async () => {
    const body = Buffer.alloc(30_000_000, '{"embedding":[0.1,0.2]}');
    const e1 = await startFake(({ response }) =>
      response.writeHead(200, { "content-type": "application/json" }).end(body),
    );
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}/v1/embeddings`, { body: { model: "m", input: "x" } });
    expect(answer.body.equals(body)).toBe(true);
  });

  it("of a failure passes compressed as it came", async () => {
    const bytes = gzipSync('{"error":"x"}');
    const headers = { "content-encoding": "gzip", "content-type": "application/json" };
    const e1 = await startFake(({ response }) => response.writeHead(400, headers).end(bytes));
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${CHAT_PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ status: 400, headers });
    expect(answer.body).toEqual(bytes);
  });
});

function byteByByte(text: string): Behaviour {
  return async ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const byte of Buffer.from(text)) {
      response.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    response.end();
  };
}

/** Waits until a count has not moved for as long as everything that could move it would take. */
async function standsStill(count: () => number): Promise<void> {
  let before = -1;
  while (before !== count()) {
    before = count();
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}
