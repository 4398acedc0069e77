import { Agent } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type * as Undici from "undici";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Behaviour, hold, ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint, testPool } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** What the clients of endpoints were made with. */
const clientOptions = vi.hoisted((): object[] => []);
vi.mock("undici", async (original) => {
  const undici = await original<typeof Undici>();
  class Client extends undici.Client {
    constructor(origin: string | URL, options: Undici.Client.Options = {}) {
      super(origin, options);
      clientOptions.push(options);
    }
  }
  return { ...undici, Client };
});

/** Takes connections, and never reads from one. */
async function startBlackHole(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("an endpoint that takes connections and never answers", () => {
  it("delays no request to another one", async () => {
    const e2 = await startFake();
    const hanging = testEndpoint("e1", await startBlackHole(), { models: ["hangs"] });
    const pools = [
      testPool([], { name: "hanging", models: ["hangs"], endpoints: [hanging] }),
      testPool([e2.url], { name: "well", models: ["m"] }),
    ];
    const overrides = { pools, timeouts: { firstByteMs: 1_500 }, health: { intervalMs: 60_000 } };
    const gateway = await runGateway(testConfig([], overrides));
    await until(() => gateway.runtime.pools[1]?.isReady === true);
    const url = `${gateway.listenUrl}${PATH}`;
    const stuck = Array.from({ length: 100 }, () => send(url, { body: { ...CHAT, model: "hangs" } }));
    const account = gateway.runtime.pools[0]?.balancer.members[0]?.account;
    await until(() => account?.requests === 100);
    const answers = await Promise.all(Array.from({ length: 200 }, () => exchange(url, { body: CHAT })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(account?.requests).toBe(100);
    const ends = await Promise.all(stuck.map((client) => client.answer()));
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set([504]));
    await expectIdle(gateway);
  });
});

describe("the limits on time", () => {
  it("are the configured ones alone: the client of the endpoints has none of its own", async () => {
    clientOptions.length = 0;
    const gateway = await startGateway([await startFake()], { timeouts: { upstreamKeepAliveMs: 1_234 } });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    expect(clientOptions.length).toBeGreaterThan(0);
    for (const options of clientOptions) {
      expect(options).toMatchObject({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 1_234 });
    }
  });

  const late: Behaviour = (call) => void setTimeout(() => ok()(call), 500);

  it.each([
    { what: "below it", firstByteMs: 1_000, status: 200 },
    { what: "beyond it", firstByteMs: 200, status: 504 },
    { what: "without one", firstByteMs: undefined, status: 200 },
  ])("end a whole answer that is long in coming by the configured limit: $what", async ({ firstByteMs, status }) => {
    const gateway = await startGateway([await startFake(late)], { timeouts: { firstByteMs, idleMs: 100 } });
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(answer.status).toBe(status);
    if (status !== 200) expect(JSON.parse(answer.text).error.code).toBe("upstream_timeout");
  });
});

describe("a client that leaves while its request is tried again", () => {
  it.each([CHAT, STREAMED_CHAT])("ends that attempt, and there is no further one", async (body) => {
    let calls = 0;
    const once: Behaviour = (call) => {
      if (++calls === 1) call.socket.resetAndDestroy();
      else hold(call);
    };
    const fakes = [await startFake(once), await startFake(once), await startFake(once)];
    const gateway = await startGateway(fakes);
    const client = send(`${gateway.listenUrl}${PATH}`, { body });
    await until(() => calls === 2);
    client.abort();
    await until(() => fakes.flatMap((fake) => fake.calls).every(({ isAborted }) => isAborted));
    await expectIdle(gateway);
    expect(calls).toBe(2);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });
});

describe("a connection that is kept for further requests", () => {
  it("is watched for its client's leaving all the same", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const url = `${gateway.listenUrl}${PATH}`;
    for (let i = 0; i < 3; i++) expect(await exchange(url, { body: CHAT, agent })).toMatchObject({ status: 200 });
    e1.behave(hold);
    const client = send(url, { body: CHAT, agent });
    const call = await e1.call(3);
    client.abort();
    await until(() => call.isAborted);
    await expectIdle(gateway);
  });

  it("is kept for as long as configured, and its client is told", async () => {
    const gateway = await startGateway([await startFake()], { timeouts: { keepAliveMs: 8_000 } });
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, CHAT));
    expect(await client.receives(/\r\n\r\n[\s\S]*finish_reason/)).toMatch(/keep-alive: timeout=8\r\n/i);
    client.socket.destroy();
  });

  it("is closed when it has been idle for longer", async () => {
    const gateway = await startGateway([await startFake()], { timeouts: { keepAliveMs: 300 } });
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, CHAT));
    await client.receives(/finish_reason/);
    await client.closes();
  });
});
