import { describe, expect, it, onTestFinished } from "vitest";
import { type Behaviour, ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const MB = 1024 * 1024;

/** Sends a head and then `chunks` times the same bytes, as fast as it is let; counts what was taken. */
function flood(chunk: Buffer, chunks: number): { readonly behaviour: Behaviour; bytesSent(): number } {
  let bytes = 0;
  const behaviour: Behaviour = ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    let left = chunks;
    const more = (): void => {
      while (left-- > 0) {
        bytes += chunk.length;
        if (!response.write(chunk)) {
          response.once("drain", more);
          return;
        }
      }
      response.end();
    };
    more();
  };
  return { behaviour, bytesSent: () => bytes };
}

/** Watches what buffers hold in this process: those of the balancer, the engine and the clients together. */
function watchBuffers(): { readonly peakBytes: number } {
  const before = process.memoryUsage().arrayBuffers;
  const watched = { peakBytes: 0 };
  const timer = setInterval(() => {
    watched.peakBytes = Math.max(watched.peakBytes, process.memoryUsage().arrayBuffers - before);
  }, 5);
  onTestFinished(() => clearInterval(timer));
  return watched;
}

/** Waits until a count has not moved for as long as everything that could move it would take. */
async function standsStill(count: () => number): Promise<void> {
  let before = -1;
  while (before !== count()) {
    before = count();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

describe("an event stream without a single line end", () => {
  it("passes in full and is kept nowhere", async () => {
    const chunk = Buffer.alloc(64 * 1024, "data: x ");
    const { behaviour } = flood(chunk, 2048);
    const e1 = await startFake(behaviour);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT, isPaused: true });
    const response = await client.head();
    const buffers = watchBuffers();
    let bytes = 0;
    response.on("data", (data: Buffer) => {
      bytes += data.length;
    });
    await until(() => response.closed);
    expect(bytes).toBeGreaterThanOrEqual(2048 * chunk.length);
    // Of 128 MB. Garbage that waits for its collection counts too.
    expect(buffers.peakBytes).toBeLessThan(64 * MB);
    await expectIdle(gateway);
  });
});

describe("twenty clients that stop reading", () => {
  const event = Buffer.from(`data: ${JSON.stringify({ choices: [{ delta: { content: "x".repeat(65_000) } }] })}\n\n`);
  const CHUNKS = 3_000;

  it("hold their engine back, cost little memory and are dropped at the idle limit; others do not notice", async () => {
    const floods = Array.from({ length: 20 }, () => flood(event, CHUNKS));
    const e1 = await startFake(ok());
    e1.next(...floods.map(({ behaviour }) => behaviour));
    const gateway = await startGateway([e1], { timeouts: { idleMs: 1_500 } });
    const url = `${gateway.listenUrl}${PATH}`;
    const buffers = watchBuffers();
    const clients = floods.map(() => send(url, { body: STREAMED_CHAT, isPaused: true }));
    await Promise.all(clients.map((client) => client.head()));
    await standsStill(() => floods.reduce((sum, { bytesSent }) => sum + bytesSent(), 0));
    for (const { bytesSent } of floods) expect(bytesSent()).toBeLessThan(CHUNKS * event.length);
    // Of 3.9 GB: 2 MB at most for each client, at the engine, in the balancer and at the client.
    expect(buffers.peakBytes).toBeLessThan(20 * 3 * 2 * MB);
    expect(await exchange(url, { body: CHAT })).toMatchObject({ status: 200 });
    await until(() => e1.calls.slice(0, 20).every(({ isAborted }) => isAborted));
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ ok: 1, client_stalled: 20 });
    for (const client of clients) client.abort();
  });
});
