import { createGzip, gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  type Behaviour,
  DONE_EVENT,
  FINISH_EVENT,
  headThenHold,
  startFake,
  tokenEvent,
  USAGE_EVENT,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";
const STREAM = tokenEvent(0) + tokenEvent(1) + FINISH_EVENT + USAGE_EVENT + DONE_EVENT;
/** As clients of browsers and of Python's `requests` send it. */
const ACCEPTING = { "accept-encoding": "gzip, deflate, br, zstd" };

/** Compresses whenever it is asked to, as frameworks do, each event flushed on its own. */
const eager: Behaviour = ({ headers, response }) => {
  const isAsked = /gzip/.test(String(headers["accept-encoding"]));
  const events = [tokenEvent(0), tokenEvent(1), FINISH_EVENT, USAGE_EVENT, DONE_EVENT];
  response.writeHead(200, {
    "content-type": "text/event-stream",
    ...(isAsked ? { "content-encoding": "gzip" } : {}),
  });
  if (!isAsked) {
    response.end(events.join(""));
    return;
  }
  const gzip = createGzip();
  gzip.pipe(response);
  for (const event of events) {
    gzip.write(event);
    gzip.flush();
  }
  gzip.end();
};

/** Sends these bytes in pieces that end at the given places. */
function inPieces(
  bytes: Buffer,
  cuts: readonly number[],
  headers: Readonly<Record<string, string>>,
  status = 200,
): Behaviour {
  return async ({ response }) => {
    response.writeHead(status, headers);
    let from = 0;
    for (const cut of [...cuts, bytes.length]) {
      response.write(bytes.subarray(from, cut));
      from = cut;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    response.end();
  };
}

describe("a client that accepts compressed answers", () => {
  it("gets each event of a stream as it comes, and the balancer reads it", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT, headers: ACCEPTING });
    const call = await e1.call(0);
    expect(call.headers["accept-encoding"]).toBe("identity");
    for (let i = 0; i < 5; i++) {
      call.response.write(tokenEvent(i));
      await client.receives(tokenEvent(i));
    }
    call.response.end(FINISH_EVENT + USAGE_EVENT + DONE_EVENT);
    const { headers, isWhole } = await client.answer();
    expect(isWhole).toBe(true);
    expect(headers["content-encoding"]).toBeUndefined();
    expect(await gateway.metric("evenkeel_prompt_tokens_total")).toBe(7);
  });

  it.each([CHAT, STREAMED_CHAT])("has no engine compress for it that would if it were asked", async (body) => {
    const gateway = await startGateway([await startFake(eager)]);
    const asking = { ...body, stream_options: { include_usage: true } };
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: asking, headers: ACCEPTING });
    expect(answer).toMatchObject({ text: STREAM, isWhole: true });
    expect(answer.headers["content-encoding"]).toBeUndefined();
  });
});

describe("an engine that compresses unasked", () => {
  const bytes = gzipSync(STREAM);
  const headers = { "content-type": "text/event-stream", "content-encoding": "gzip" };

  it.each([
    { what: "inside its magic number", cuts: [1] },
    { what: "inside its header", cuts: [5] },
    { what: "behind its header and inside an event", cuts: [11, 40] },
    { what: "byte by byte at its beginning", cuts: Array.from({ length: 20 }, (_, i) => i + 1) },
  ])("has its stream passed on as it is, cut $what", async ({ cuts }) => {
    const gateway = await startGateway([await startFake(inPieces(bytes, cuts, headers))]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT, headers: ACCEPTING });
    expect(answer.headers["content-encoding"]).toBe("gzip");
    expect(answer.body).toEqual(bytes);
    expect(gunzipSync(answer.body).toString()).toBe(STREAM);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
    await expectIdle(gateway);
  });

  it("has an error passed on that its client can read: coding and length go with the bytes", async () => {
    const refusal = gzipSync('{"error":{"message":"too long"}}');
    const sent = {
      "content-type": "application/json",
      "content-encoding": "gzip",
      "content-length": String(refusal.length),
    };
    const gateway = await startGateway([await startFake(inPieces(refusal, [1, 5, 11], sent, 400))]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT, headers: ACCEPTING });
    expect(answer).toMatchObject({ status: 400, isWhole: true, headers: sent });
    expect(gunzipSync(answer.body).toString()).toBe('{"error":{"message":"too long"}}');
  });

  it("gets no plain text put behind its compressed bytes when its stream is cut off", async () => {
    const cut: Behaviour = ({ response, socket }) => {
      response.writeHead(200, headers);
      response.write(bytes.subarray(0, 30), () => socket.destroy());
    };
    const gateway = await startGateway([await startFake(cut)]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    expect(answer).toMatchObject({ isWhole: false });
    // No plain text is put behind compressed bytes.
    expect(answer.body).toEqual(bytes.subarray(0, 30));
    expect(await gateway.outcomes()).toEqual({ truncated: 1 });
  });
});

describe("an error of the balancer's own", () => {
  it("is plain, whatever coding the client accepts", async () => {
    const gateway = await startGateway([await startFake()]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: "{", headers: ACCEPTING });
    expect(answer.status).toBe(400);
    expect(answer.headers["content-encoding"]).toBeUndefined();
    expect(answer.headers["content-length"]).toBe(String(answer.body.length));
    expect(JSON.parse(answer.text).error.code).toBe("invalid_json");
  });
});
