import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ClientCall, exchange } from "../../support/http-client.ts";
import { errorIn, startEndlessStream, vllmChat } from "../harness/chat.ts";
import { chatEventsOf, eventsOf } from "../harness/events.ts";
import { Serve } from "../harness/serve.ts";
import { VllmServer } from "../harness/vllm-server.ts";

let engines: [VllmServer, VllmServer];
let serve: Serve;

beforeAll(async () => {
  engines = (await VllmServer.startSeveral(2)) as [VllmServer, VllmServer];
  serve = await Serve.start(
    engines.map(({ url }) => url),
    ["--policy", "round_robin", "--timeouts-idle", "10s"],
  );
  return async () => {
    for (const engine of engines) await engine.kill();
    await serve.stop();
  };
});

/** Whatever a test left dead runs again, and the balancer has taken it back. */
beforeEach(async () => {
  for (const engine of engines) {
    if (!engine.process.isRunning) await engine.start();
    await expect.poll(() => serve.availability(engine.url)).toBe("ready");
  }
});

afterEach(async () => {
  await expect.poll(() => serve.openWork()).toBe(0);
  expect(await serve.metric("requests_in_flight")).toBe(0);
});

async function partsOf(call: ClientCall): Promise<{ victim: VllmServer; other: VllmServer }> {
  const name = String((await call.head()).headers["x-evenkeel-endpoint"]);
  const [a, b] = engines;
  return a.url.endsWith(name) ? { victim: a, other: b } : { victim: b, other: a };
}

async function expectServedBy(engine: VllmServer): Promise<void> {
  for (let i = 0; i < 4; i++) {
    const body = { ...vllmChat(4), stream: true };
    const { status, isWhole, headers } = await exchange(`${serve.url}/v1/chat/completions`, { body });
    expect([status, isWhole]).toEqual([200, true]);
    expect(engine.url).toContain(headers["x-evenkeel-endpoint"]);
  }
}

describe("in the middle of a stream", () => {
  it("an engine core that is killed is told of by vLLM, whose words pass unchanged and are no success", async () => {
    const okBefore = await serve.outcomes("ok");
    const call = await startEndlessStream(serve.url, vllmChat(1900));
    const { victim, other } = await partsOf(call);
    victim.killEngineCore();
    const { text, isWhole } = await call.answer();
    // vLLM ends such a stream as it ends a good one.
    expect(isWhole).toBe(true);
    expect(eventsOf(text).at(-1)).toBe("[DONE]");
    expect(errorIn(text)).toMatchObject({ code: 500 });
    expect(chatEventsOf(text).some(({ choices }) => choices?.[0]?.finish_reason === "stop")).toBe(false);
    expect(await serve.outcomes("in_band_error")).toBe(1);
    expect(await serve.outcomes("ok")).toBe(okBefore);
    await expect.poll(() => serve.availability(victim.url)).toBe("down");
    await expectServedBy(other);
    await victim.process.exited();
  });

  it("a server that is killed breaks the stream with an error, and the next requests go to the other at once", async () => {
    const call = await startEndlessStream(serve.url, vllmChat(1900));
    const { victim, other } = await partsOf(call);
    await victim.kill();
    const { text, isWhole } = await call.answer();
    expect(isWhole).toBe(false);
    expect(text).not.toContain("[DONE]");
    expect(errorIn(text)).toMatchObject({ type: "server_error" });
    await expectServedBy(other);
  });

  it("a server that is told to end (SIGTERM) leaves the client with an error, and new requests go to the other", async () => {
    const errorsBefore = await serve.outcomes("in_band_error");
    const call = await startEndlessStream(serve.url, vllmChat(1900));
    const { victim, other } = await partsOf(call);
    // vLLM kills its engine core, and what becomes of the stream is a race: it is silent until the watchdog ends it, or
    // it ends with an error event, or with the finish reason "abort" and otherwise as a good one does.
    victim.process.signal("SIGTERM");
    await expectServedBy(other);
    const { text, isWhole } = await call.answer();
    const isAborted = chatEventsOf(text).some(({ choices }) => choices?.[0]?.finish_reason === "abort");
    expect(isAborted || errorIn(text) !== undefined).toBe(true);
    const told = (await serve.outcomes("in_band_error")) - errorsBefore;
    expect([told, await serve.outcomes("stalled")]).toEqual(isWhole ? [1, 0] : [0, 1]);
    await victim.process.exited();
  });
});
