import type { Dispatcher } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { DONE_EVENT, type FakeUpstream, headThenHold, ok, startFake } from "../../test/support/fake-upstream.ts";
import { testEndpoint } from "../../test/support/test-config.ts";
import { until } from "../../test/support/until.ts";
import { Upstream } from "./upstream.ts";

const surroundings = {
  timeouts: { connectMs: 1_000, upstreamKeepAliveMs: 60_000 },
  resolver: { resolve: async () => ["127.0.0.1"] },
  clock: { nowMs: () => performance.now() },
};

/** An exchange that is watched to its end. */
class Watched implements Dispatcher.DispatchHandler {
  text = "";
  isWhole = false;
  error: Error | undefined;

  get isOver(): boolean {
    return this.isWhole || this.error !== undefined;
  }

  onRequestStart(): void {}

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.text += chunk.toString();
  }

  onResponseEnd(): void {
    this.isWhole = true;
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.error = error;
  }
}

function upstreamOf({ url }: FakeUpstream, clock = surroundings.clock): Upstream {
  const upstream = new Upstream(testEndpoint("e1", url), { ...surroundings, clock });
  onTestFinished(() => upstream.close());
  return upstream;
}

function start(upstream: Upstream, connection: "any" | "fresh" = "any"): Watched {
  const handler = new Watched();
  upstream.send(
    { method: "POST", path: "/v1/chat/completions", headers: [], body: Buffer.from("{}") },
    connection,
    handler,
  );
  return handler;
}

async function send(upstream: Upstream): Promise<Watched> {
  const handler = start(upstream);
  await until(() => handler.isOver);
  return handler;
}

describe("Upstream", () => {
  it("uses a connection again, and says so", async () => {
    const fake = await startFake();
    const upstream = upstreamOf(fake);
    await send(upstream);
    await send(upstream);
    expect(fake.calls[1]?.socket).toBe(fake.calls[0]?.socket);
    expect(upstream.openConnections).toBe(1);
    start(upstream, "fresh");
    await fake.call(2);
    expect(fake.calls[2]?.socket).not.toBe(fake.calls[0]?.socket);
  });

  it("opens as many connections as there are requests", async () => {
    const fake = await startFake(headThenHold);
    const upstream = upstreamOf(fake);
    const handlers = Array.from({ length: 300 }, () => start(upstream));
    await until(() => fake.calls.length === 300);
    expect(upstream.openConnections).toBe(300);
    for (const { response } of fake.calls) response.end(DONE_EVENT);
    await until(() => handlers.every(({ isWhole }) => isWhole));
  });

  it("gives up a connection that has been used for long, but not what it carries", async () => {
    const fake = await startFake(headThenHold);
    let nowMs = 0;
    const upstream = upstreamOf(fake, { nowMs: () => nowMs });
    const stream = start(upstream);
    const call = await fake.call(0);
    fake.behave(ok());
    await send(upstream);
    expect(upstream.openConnections).toBe(2);
    nowMs = 299_000;
    await send(upstream);
    expect(fake.calls[2]?.socket).toBe(fake.calls[1]?.socket);
    nowMs = 300_000;
    await send(upstream);
    expect(fake.calls[3]?.socket).not.toBe(fake.calls[1]?.socket);
    call.response.end(DONE_EVENT);
    await until(() => stream.isWhole);
    await until(() => upstream.openConnections === 1);
  });

  it("makes new connections with new settings, and lets those of before finish", async () => {
    const [one, two] = [await startFake(headThenHold), await startFake()];
    const upstream = upstreamOf(one);
    const stream = start(upstream);
    const call = await one.call(0);
    upstream.reconfigure(testEndpoint("e1", one.url, { weight: 3 }), surroundings);
    one.next(ok());
    await send(upstream);
    expect(one.openSockets).toBe(2);
    upstream.reconfigure(testEndpoint("e1", two.url), surroundings);
    await until(() => one.openSockets === 1);
    await send(upstream);
    expect(two.calls).toHaveLength(1);
    call.response.end(DONE_EVENT);
    await until(() => stream.isWhole);
    await until(() => one.openSockets === 0);
  });

  it("is done when the last request is", async () => {
    const fake = await startFake(headThenHold);
    const upstream = upstreamOf(fake);
    const stream = start(upstream);
    const call = await fake.call(0);
    let isFinished = false;
    const finished = upstream.finish().then(() => {
      isFinished = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isFinished).toBe(false);
    call.response.end(DONE_EVENT);
    await finished;
    expect(stream.isWhole).toBe(true);
    await until(() => fake.openSockets === 0);
    expect(upstream.openConnections).toBe(0);
  });

  it("ends everything when it is closed, also what had to finish on connections of before", async () => {
    const [one, two] = [await startFake(headThenHold), await startFake(headThenHold)];
    const upstream = upstreamOf(one);
    const streams = [start(upstream)];
    await one.call(0);
    upstream.reconfigure(testEndpoint("e1", two.url), surroundings);
    streams.push(start(upstream));
    await two.call(0);
    await upstream.close();
    await until(() => streams.every(({ error }) => error !== undefined));
    await until(() => one.openSockets === 0 && two.openSockets === 0);
  });
});
