import { describe, expect, it } from "vitest";
import { code, FINISH_EVENT, hold, ok, raw, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

/** What `npm run fuzz` found once, in the smallest form of it. */
describe("the balancer", () => {
  it("does not let an error event pass for the end of a stream of known length", async () => {
    const sent = tokenEvent(0) + FINISH_EVENT;
    const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${sent.length + 14}\r\n\r\n`;
    const gateway = await startGateway([await startFake(raw(head + sent))]);
    const body = { ...STREAMED_CHAT, stream_options: { include_usage: true } };
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body });
    expect(answer.text).toContain("upstream_error");
    expect(answer.isWhole).toBe(false);
  });

  it.each([
    { prompt_tokens: 7, completion_tokens: 1e99 },
    { prompt_tokens: 1e300, completion_tokens: 3 },
    { total_tokens: 1, completion_tokens: 5 },
    { prompt_tokens: 7.5, completion_tokens: -1 },
  ])("goes on after an engine counted %j", async (usage) => {
    const fake = await startFake(ok({ choices: [{ index: 0, message: {}, finish_reason: "stop" }], usage }));
    const gateway = await startGateway([fake]);
    for (let i = 0; i < 3; i++) {
      const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT });
      expect(answer.status).toBe(200);
    }
    // A request whose tokens are not seen is moved on by what was learned of the last ones.
    fake.next(hold);
    const held = send(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT });
    await fake.call(3);
    gateway.runtime.pools[0]?.balancer.tick(gateway.runtime.clock.nowMs() + 1000);
    held.abort();
    await until(async () => (await gateway.metric("evenkeel_requests_in_flight")) === 0);
    expect(await gateway.outcomes()).toEqual({ ok: 3, client_closed: 1 });
    await expectIdle(gateway);
  });

  it("outlives a client that asks to CONNECT behind a request and is gone", async () => {
    const fake = await startFake(ok());
    const gateway = await startGateway([fake]);
    fake.next(hold);
    const client = new RawClient(gateway.listenUrl);
    client.write(`${rawPost("/v1/chat/completions", CHAT)}CONNECT example:443 HTTP/1.1\r\nHost: example:443\r\n\r\n`);
    const call = await fake.call(0);
    client.socket.resetAndDestroy();
    await client.closes();
    code(200, {})(call);
    await until(async () => (await gateway.metric("evenkeel_requests_in_flight")) === 0);
    expect((await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: CHAT })).status).toBe(200);
    await expectIdle(gateway);
  });
});
