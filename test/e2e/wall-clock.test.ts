import { describe, expect, it, onTestFinished, vi } from "vitest";
import { headThenHold, hold, ok, sse, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const HOUR_MS = 3_600_000;

/** From now on the wall clock jumps by an hour, every 10 ms, back and forth or always the same way. */
function jump(direction: "back" | "forth" | "both"): void {
  vi.useFakeTimers({ toFake: ["Date"] });
  const start = Date.now();
  let jumps = 0;
  const timer = setInterval(() => {
    jumps++;
    const hours = direction === "both" ? jumps % 2 : direction === "forth" ? jumps : -jumps;
    vi.setSystemTime(start + hours * HOUR_MS);
  }, 10);
  onTestFinished(() => {
    clearInterval(timer);
    vi.useRealTimers();
  });
}

describe.each(["back", "forth", "both"] as const)(
  "while the wall clock is set %s by an hour at a time",
  (direction) => {
    it("streams live for as long as they move, and end when they stall", async () => {
      const e1 = await startFake(sse(10, 40));
      const gateway = await startGateway([e1], { timeouts: { idleMs: 300, firstByteMs: 300 } });
      jump(direction);
      const whole = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
      expect(whole).toMatchObject({ status: 200, isWhole: true });
      e1.behave(({ response }) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(tokenEvent(0));
      });
      const stalled = await exchange(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
      expect(stalled.isWhole).toBe(false);
      e1.behave(hold);
      expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 504 });
      expect(await gateway.outcomes()).toEqual({ ok: 1, stalled: 1, upstream_timeout: 1 });
      for (const name of ["request_duration", "time_to_first_token"]) {
        const seconds = await gateway.metric(`evenkeel_${name}_seconds_sum`);
        expect(seconds).toBeGreaterThan(0);
        expect(seconds).toBeLessThan(10);
      }
      await expectIdle(gateway);
    });

    it("requests are held for as long as they may be", async () => {
      const e1 = await startFake(headThenHold);
      const endpoints = [testEndpoint("e1", e1.url, { kvCapacityTokens: 1000 })];
      const holding = { maxRequests: 10, maxBytes: 1_000_000, maxWaitMs: 400, promoteAfterMs: 10_000 };
      const pool = { policy: { name: "least_delay", options: {} }, endpoints, holding };
      const gateway = await startGateway([], { pool });
      const chat = (n: number) => ({
        ...STREAMED_CHAT,
        max_tokens: 8,
        messages: [{ role: "user", content: `${n} `.repeat(1200) }],
      });
      const url = `${gateway.listenUrl}${PATH}`;
      const first = send(url, { body: chat(0) });
      (await e1.call(0)).response.write(tokenEvent(0));
      await first.receives(tokenEvent(0));
      e1.behave(ok());
      jump(direction);
      const answer = await exchange(url, { body: chat(1) });
      expect(answer.status).toBe(429);
      expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
      expect(Number(answer.headers["retry-after"])).toBeLessThanOrEqual(60);
      const heldSeconds = await gateway.metric("evenkeel_hold_duration_seconds_sum");
      expect(heldSeconds).toBeGreaterThanOrEqual(0.399);
      expect(heldSeconds).toBeLessThan(5);
      first.abort();
      await expectIdle(gateway);
    });

    it("probes go on, and an endpoint goes and comes back by them", async () => {
      const e1 = await startFake();
      const gateway = await startGateway([e1, await startFake()], { health: { intervalMs: 30 } });
      const availability = () => gateway.runtime.pools[0]?.balancer.members[0]?.availability;
      await until(() => availability() === "ready");
      jump(direction);
      e1.onProbe = (_request, response) => void response.writeHead(500).end();
      await until(() => availability() === "down");
      e1.onProbe = undefined;
      await until(() => availability() === "ready");
      // Not all at once, as if an hour of them were due.
      const before = e1.probes.length;
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(e1.probes.length - before).toBeLessThan(20);
    });

    it("closing waits for what runs, within its limit", async () => {
      const e1 = await startFake(sse(8, 40));
      const gateway = await startGateway([e1], { timeouts: { drainMs: 5_000 } });
      const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
      await client.head();
      jump(direction);
      const closed = gateway.close();
      expect(await client.answer()).toMatchObject({ isWhole: true });
      await closed;
    });
  },
);
