import { describe, expect, it } from "vitest";
import { DONE_EVENT, FINISH_EVENT, headThenHold, ok, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const LARGE = Buffer.from(
  JSON.stringify({ model: "m", messages: [{ role: "user", content: "x ".repeat(2_000_000) }] }),
);

describe("whether the process lives", () => {
  it("is told at any time: under streams, large bodies and probes that hang", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const url = `${gateway.listenUrl}${PATH}`;
    const streams = Array.from({ length: 300 }, () => send(url, { body: STREAMED_CHAT }));
    await until(() => e1.calls.length === 300);
    e1.onProbe = () => {};
    e1.behave(ok());
    let left = 12;
    const large = Array.from({ length: left }, async () => {
      const answer = await exchange(url, { body: LARGE });
      left--;
      return answer.status;
    });
    let asked = 0;
    while (left > 0 || asked < 10) {
      // A process that cannot say so within this is taken for dead by whoever started it.
      const answer = await fetch(`${gateway.admin}/livez`, { signal: AbortSignal.timeout(5_000) });
      expect(answer.status).toBe(200);
      asked++;
      for (const { response } of e1.calls.slice(0, 300)) response.write(tokenEvent(asked));
    }
    expect(new Set(await Promise.all(large))).toEqual(new Set([200]));
    for (const { response } of e1.calls.slice(0, 300)) response.end(FINISH_EVENT + DONE_EVENT);
    const ends = await Promise.all(streams.map((client) => client.answer()));
    expect(ends.every(({ isWhole }) => isWhole)).toBe(true);
  });

  it("does not hang on what is not alive: no endpoint answers, nothing is ready", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { health: { intervalMs: 30, timeoutMs: 50, unhealthyAfter: 1 } });
    e1.onProbe = () => {};
    await until(() => !gateway.runtime.isReady);
    for (const path of ["/livez", "/healthz"]) expect((await fetch(`${gateway.admin}${path}`)).status).toBe(200);
    expect((await fetch(`${gateway.admin}/readyz`)).status).toBe(503);
    e1.onProbe = undefined;
    await until(async () => (await fetch(`${gateway.admin}/readyz`)).status === 200);
  });
});
