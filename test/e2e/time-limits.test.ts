import { describe, expect, it } from "vitest";
import {
  type Behaviour,
  DONE_EVENT,
  FINISH_EVENT,
  headThenHold,
  hold,
  ok,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, STREAMED_CHAT, send } from "../support/http-client.ts";
import { startOrdered } from "../support/ordered-pool.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

/** Tokens for ever. */
const endless: Behaviour = ({ response }) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  let sent = 0;
  const timer = setInterval(() => response.write(tokenEvent(sent++)), 20);
  response.on("close", () => clearInterval(timer));
};

/** Two tokens, then silence. */
const stalling: Behaviour = ({ response }) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(tokenEvent(0) + tokenEvent(1));
};

describe("a limit on time", () => {
  it.each([
    { what: "an answer's first byte", behaviour: hold, timeouts: { firstByteMs: 100 }, outcome: "upstream_timeout" },
    { what: "a silence", behaviour: stalling, timeouts: { idleMs: 100 }, outcome: "stalled" },
    { what: "a stream in all", behaviour: endless, timeouts: { totalMs: 300, idleMs: 200 }, outcome: "timed_out" },
    { what: "a stream in all, silent or not", behaviour: stalling, timeouts: { totalMs: 150 }, outcome: "timed_out" },
    { what: "a request in all, answered or not", behaviour: hold, timeouts: { totalMs: 150 }, outcome: "timed_out" },
    { what: "a head that nothing follows", behaviour: headThenHold, timeouts: { totalMs: 150 }, outcome: "timed_out" },
  ])("of $what has an outcome of its own", async ({ behaviour, timeouts, outcome }) => {
    const gateway = await startOrdered([behaviour], { timeouts });
    const answer = await gateway.chat(STREAMED_CHAT);
    if (answer.status === 200) expect(answer).toMatchObject({ isWhole: false });
    else expect(answer).toMatchObject({ status: 504, isWhole: true });
    expect(answer.text).toContain('"upstream_timeout"');
    expect(await gateway.outcomes()).toEqual({ [outcome]: 1 });
    await until(() => gateway.fakes[0]?.calls[0]?.isAborted === true);
    await expectIdle(gateway);
  });

  it("in all leaves no time for another endpoint, and says nothing of the one it ends at", async () => {
    const gateway = await startOrdered([hold, ok()], { timeouts: { totalMs: 100 }, ejection: { failures: 1 } });
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 504 });
    expect(gateway.hits()).toEqual([1, 0]);
    gateway.fakes[0]?.behave(ok());
    expect(await gateway.chat(CHAT)).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e1" } });
  });

  it("in all counts the time that a request is held", async () => {
    const gateway = await startOrdered([hold]);
    const url = gateway.fakes[0]?.url ?? "";
    const endpoints = [testEndpoint("e1", url, { maxRequests: 1 })];
    const full = await startOrdered([], { pool: { endpoints }, timeouts: { totalMs: 400 } });
    const first = send(full.chatUrl, { body: CHAT });
    await gateway.fakes[0]?.call(0);
    const second = send(full.chatUrl, { body: CHAT });
    await until(() => full.runtime.pools[0]?.balancer.heldRequests === 1);
    expect((await first.answer()).status).toBe(504);
    const { status } = await second.answer();
    // The second one had its place when the first was over, or its own time was over just then.
    expect([429, 504]).toContain(status);
    expect(full.runtime.pools[0]?.balancer.heldRequests).toBe(0);
    await expectIdle(full);
  });
});

describe("a request whose whole time passes while it is held", () => {
  it("is told when to come again, as any that waited too long", async () => {
    const e1 = await startFake(hold);
    const gateway = await startOrdered([], { pool: { endpoints: [testEndpoint("e1", e1.url, { maxRequests: 1 })] } });
    const first = send(gateway.chatUrl, { body: CHAT });
    await e1.call(0);
    const { config } = gateway.runtime;
    gateway.runtime.reconfigure({ ...config, timeouts: { ...config.timeouts, totalMs: 150 } });
    const { status, headers } = await gateway.chat(CHAT);
    expect(status).toBe(429);
    expect(headers["x-evenkeel-reason"]).toBe("queue_timeout");
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    first.abort();
    await expectIdle(gateway);
  });
});

describe("an engine that was told to end", () => {
  it("is not waited for where it leaves a stream as it is, but where it finishes one", async () => {
    const health = { intervalMs: 100, timeoutMs: 500, unhealthyAfter: 2 };
    const gateway = await startOrdered([headThenHold, ok()], { health, timeouts: { idleMs: 60_000 } });
    const [e1] = gateway.fakes;
    const [silent, finished] = [
      send(gateway.chatUrl, { body: STREAMED_CHAT }),
      send(gateway.chatUrl, { body: STREAMED_CHAT }),
    ];
    await e1?.call(1);
    for (const [i, client] of [silent, finished].entries()) {
      e1?.calls[i]?.response.write(tokenEvent(0));
      await client.receives(tokenEvent(0));
    }
    e1?.stopListening();
    let sent = 1;
    const timer = setInterval(() => e1?.calls[1]?.response.write(tokenEvent(sent++)), 200);
    expect(await silent.answer()).toMatchObject({ status: 200, isWhole: false });
    clearInterval(timer);
    e1?.calls[1]?.response.end(FINISH_EVENT + DONE_EVENT);
    expect(await finished.answer()).toMatchObject({ status: 200, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ stalled: 1, ok: 1 });
    await expectIdle(gateway);
  });
});
