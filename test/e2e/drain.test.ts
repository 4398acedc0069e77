import { once } from "node:events";
import { Agent } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { startServer } from "../../src/gateway/index.ts";
import { DONE_EVENT, headThenHold, hold, ok, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig } from "../support/test-config.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** For tests that do something while the balancer drains. */
const PATIENT = { timeouts: { drainMs: 2_000 } };

describe("closing", () => {
  it("lets a stream finish, closes idle connections and accepts no new ones", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1], PATIENT);
    const idle = new RawClient(gateway.listenUrl).write("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
    await idle.receives(/200 OK/);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    call.response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));

    const closed = gateway.close();
    expect((await fetch(`${gateway.admin}/readyz`)).status).toBe(503);
    expect((await fetch(`${gateway.admin}/healthz`)).status).toBe(200);
    await idle.closes();
    await expect(exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).rejects.toThrow(/ECONNREFUSED/);
    call.response.write(tokenEvent(1));
    await client.receives(tokenEvent(1));
    call.response.end(DONE_EVENT);
    expect(await client.answer()).toMatchObject({ isWhole: true, text: tokenEvent(0) + tokenEvent(1) + DONE_EVENT });
    await closed;
    await until(() => e1.openSockets === 0);
  });

  it("first says so and serves on for a moment, until those who send have heard it", async () => {
    const gateway = await startGateway([await startFake()], { timeouts: { drainMs: 10_000 } });
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const closed = gateway.close();
    expect((await fetch(`${gateway.admin}/readyz`)).status).toBe(503);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT, agent });
    expect(answer).toMatchObject({ status: 200, isWhole: true, headers: { connection: "close" } });
    await closed;
  });

  it("does not wait for connections that have carried nothing yet", async () => {
    const gateway = await startGateway([await startFake()], { timeouts: { drainMs: undefined } });
    const unused = new RawClient(gateway.listenUrl);
    await once(unused.socket, "connect");
    // What came over a connection after it shows that the balancer has accepted it.
    await exchange(`${gateway.listenUrl}/v1/models`, { method: "GET" });
    await gateway.close();
    expect(await unused.closes()).toBe("");
  });

  it("tells those who wait for a whole answer that their connection ends with it", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1], PATIENT);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const client = send(`${gateway.listenUrl}${PATH}`, { body: CHAT, agent });
    const call = await e1.call(0);
    const closed = gateway.close();
    ok()(call);
    expect(await client.answer()).toMatchObject({ status: 200, isWhole: true, headers: { connection: "close" } });
    await closed;
  });

  it("refuses what comes over connections that are still open", async () => {
    const e1 = await startFake(headThenHold);
    // The stream's head goes out before the balancer closes, and so promises another answer.
    const gateway = await startGateway([e1], { ...PATIENT, failover: { guardMs: undefined } });
    const client = new RawClient(gateway.listenUrl);
    client.write(rawPost(PATH, STREAMED_CHAT) + rawPost("/v1/messages", CHAT));
    const call = await e1.call(0);
    await client.receives(/200 OK/);
    const closed = gateway.close();
    await until(() => refusesConnections(gateway.listenUrl));
    call.response.end(`${tokenEvent(0)}${DONE_EVENT}`);
    const received = await client.closes();
    expect(received).toMatch(/data: \[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1.1 503 [\s\S]*overloaded_error/);
    expect(received.slice(received.indexOf(" 503 "))).toMatch(/connection: close\r\n/i);
    expect(received.slice(received.indexOf(" 503 "))).toMatch(/retry-after: \d+\r\n/i);
    expect(e1.calls).toHaveLength(1);
    await closed;
  });

  it("ends everything at the limit", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1], { timeouts: { drainMs: 100 } });
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await client.head();
    const call = await e1.call(0);
    await gateway.close();
    expect(await client.answer()).toMatchObject({ isWhole: false });
    await until(() => call.isAborted);
  });

  it("may be asked for twice, and before anything was served", async () => {
    const server = await startServer(testConfig([(await startFake()).url]));
    const first = server.close();
    expect(server.close()).toBe(first);
    await first;
    await server.close();
  });

  it("leaves the ports free", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    await gateway.close();
    const listen = { host: "127.0.0.1", port: Number(new URL(gateway.listenUrl).port) };
    const admin = { host: "127.0.0.1", port: Number(new URL(gateway.admin).port) };
    const again = await startGateway([e1], { listen, admin });
    expect(await exchange(`${again.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    await expectIdle(again);
  });

  it("leaves nothing that keeps the process alive", async () => {
    const before = process.getActiveResourcesInfo();
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    await Promise.all(Array.from({ length: 5 }, () => exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })));
    await gateway.close();
    await e1.kill();
    const more = (kind: string): number => count(kind, process.getActiveResourcesInfo()) - count(kind, before);
    await until(() => more("TCPSocketWrap") <= 0 && more("TCPServerWrap") <= 0);
    expect(more("Timeout")).toBeLessThanOrEqual(0);
  });
});

async function refusesConnections(url: string): Promise<boolean> {
  const socket = new RawClient(url).socket;
  const isOpen = await Promise.race([
    once(socket, "connect").then(() => true),
    new Promise<boolean>((resolve) => socket.once("close", () => resolve(false))),
  ]).catch(() => false);
  socket.destroy();
  return !isOpen;
}

function count(kind: string, resources: readonly string[]): number {
  return resources.filter((resource) => resource === kind).length;
}

describe("starting", () => {
  it("fails when a port is taken, and leaves the other free", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const taken = { host: "127.0.0.1", port: Number(new URL(gateway.admin).port) };
    await expect(startServer(testConfig([e1.url], { listen: taken }))).rejects.toThrow(/EADDRINUSE/);
    await expect(startServer(testConfig([e1.url], { admin: taken }))).rejects.toThrow(/EADDRINUSE/);
  });
});
