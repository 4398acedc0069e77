import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { DONE_EVENT, FINISH_EVENT, hold, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { type ClientCall, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const EVENT_STREAM = { "content-type": "text/event-stream" };
const BODY_BYTES = 500_000;
const STREAMS = 20;
const bodyOf = (model: string): string =>
  JSON.stringify({ ...STREAMED_CHAT, model, messages: [{ role: "user", content: "x".repeat(BODY_BYTES) }] });

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** What buffers take at least: garbage is let go turn by turn, and by threads of its own. */
async function leastInBuffers(isEnough: (bytes: number) => boolean = () => false): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 20 && !isEnough(least); i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collectGarbage();
    least = Math.min(least, process.memoryUsage().arrayBuffers);
  }
  return least;
}

const buffered = (gateway: TestGateway): Promise<number> => gateway.metric("evenkeel_buffered_bytes");

describe("a stream that lasts", () => {
  it.each([
    { how: "as it came", model: "m", encoding: undefined },
    { how: "by an alias", model: "alias", encoding: undefined },
    { how: "compressed", model: "m", encoding: "gzip" },
  ])("keeps nothing of its request, which went out $how", async ({ model, encoding }) => {
    const e1 = await startFake(hold);
    const endpoints = [testEndpoint("e1", e1.url)];
    const gateway = await startGateway([], { pool: { endpoints, aliases: new Map([["alias", "m"]]) } });
    const text = bodyOf(model);
    const body = encoding === undefined ? Buffer.from(text) : gzipSync(text);
    const headers = { "content-type": "application/json", ...(encoding && { "content-encoding": encoding }) };
    const before = await leastInBuffers();
    const streams: ClientCall[] = [];
    for (let i = 0; i < STREAMS; i++) {
      streams.push(send(`${gateway.listenUrl}${PATH}`, { body, headers }));
      const call = await e1.call(i);
      expect(call.body.length).toBeGreaterThan(BODY_BYTES);
      // The engine of this test must not keep it either.
      Object.assign(call, { body: undefined });
    }
    expect(await buffered(gateway)).toBeGreaterThan(STREAMS * BODY_BYTES);
    for (const { response } of e1.calls) response.writeHead(200, EVENT_STREAM).write(tokenEvent(0));
    await until(() => streams.every((stream) => stream.text.includes("t0")));
    expect(await buffered(gateway)).toBe(0);
    const isNothing = (bytes: number): boolean => bytes - before < (STREAMS * BODY_BYTES) / 5;
    expect(await leastInBuffers(isNothing)).toSatisfy(isNothing);
    for (const { response } of e1.calls) response.end(FINISH_EVENT + DONE_EVENT);
    for (const stream of streams) expect(await stream.answer()).toMatchObject({ isWhole: true });
    await expectIdle(gateway);
  });
});
