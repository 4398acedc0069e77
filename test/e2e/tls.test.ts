import { type ClientRequest, type IncomingMessage, request as plainRequest } from "node:http";
import { Agent, type RequestOptions, request } from "node:https";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { connect, type TLSSocket } from "node:tls";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { Secret } from "../../src/config/index.ts";
import type { EndpointTls, ListenerTls } from "../../src/runtime/index.ts";
import { type Certified, createAuthority } from "../support/certificates.ts";
import { type FakeUpstream, hold, ok, rstAt, sse, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, rawPost, STREAMED_CHAT } from "../support/http-client.ts";
import { type TestOverrides, testConfig, testEndpoint } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const authority = createAuthority();
const certified = authority.issue(["127.0.0.1", "engine.test"]);

function listenerTls({ cert, key }: Certified = certified, clientCa?: string): ListenerTls {
  return { cert, key: new Secret(key), clientCa };
}

function endpointTls(settings: Partial<EndpointTls> = {}): EndpointTls {
  return { ca: undefined, cert: undefined, key: undefined, serverName: undefined, isVerified: true, ...settings };
}

/** Posts over a connection of its own unless `options` has an agent. @throws the error of the connection. */
async function post(
  url: string,
  body: object,
  options: RequestOptions = {},
): Promise<{ readonly status: number | undefined; readonly text: string; readonly peer: string }> {
  const sent: ClientRequest = request(url, { method: "POST", ca: authority.cert, agent: false, ...options });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve).once("error", reject).end(JSON.stringify(body));
  });
  const peer = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
  return { status: response.statusCode, text: await text(response), peer };
}

async function behindTls(fake: FakeUpstream, overrides: TestOverrides = {}): Promise<TestGateway> {
  return startGateway([fake], { tls: listenerTls(), ...overrides });
}

describe("TLS towards clients", () => {
  it("carries answers and streams of HTTP/1.1", async () => {
    const gateway = await behindTls(await startFake(sse(3)));
    expect(gateway.listenUrl).toMatch(/^https:/);
    const answer = await post(`${gateway.listenUrl}${PATH}`, STREAMED_CHAT);
    expect(answer).toMatchObject({ status: 200, text: expect.stringMatching(/data: \[DONE\]\n\n$/) });
    await expectIdle(gateway);
  });

  it.each(["1.0", "1.1"])("cuts a broken stream of HTTP/%s", async (version) => {
    const gateway = await behindTls(await startFake(rstAt(1)));
    const { hostname: host, port } = new URL(gateway.listenUrl);
    const socket = connect({ host, port: Number(port), ca: authority.cert });
    socket.write(rawPost(PATH, STREAMED_CHAT, { version }));
    expect(await text(socket)).toContain("upstream_error");
    expect(await gateway.outcomes()).toEqual({ truncated: 1 });
    await expectIdle(gateway);
  });

  it("shows the certificate that is configured", async () => {
    const gateway = await behindTls(await startFake());
    await expect(
      post(`${gateway.listenUrl}${PATH}`, CHAT, { ca: createAuthority("other").cert }),
    ).rejects.toMatchObject({
      code: expect.stringMatching(/UNABLE_TO|SELF_SIGNED/),
    });
  });

  it("shows a renewed certificate to those who connect afterwards, and lets the others go on", async () => {
    const gateway = await behindTls(await startFake(ok()));
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: authority.cert });
    onTestFinished(() => agent.destroy());
    const url = `${gateway.listenUrl}${PATH}`;
    const before = await post(url, CHAT, { agent });
    const { config } = gateway.runtime;
    gateway.runtime.reconfigure({ ...config, tls: listenerTls(authority.issue(["127.0.0.1"])) });
    expect((await post(url, CHAT, { agent })).peer).toBe(before.peer);
    const after = await post(url, CHAT);
    expect(after.status).toBe(200);
    expect(after.peer).not.toBe(before.peer);
  });

  it("is not disturbed by those who do not speak it", async () => {
    const e1 = await startFake(sse(30, 10));
    const gateway = await behindTls(e1);
    const { port } = new URL(gateway.listenUrl);
    const running = post(`${gateway.listenUrl}${PATH}`, STREAMED_CHAT);
    await e1.call(0);
    for (const bytes of ["GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01garbage", ""]) {
      const socket = connectTcp(Number(port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(bytes, () => socket.resetAndDestroy());
    }
    const plain = plainRequest(`http://127.0.0.1:${port}/v1/models`);
    await expect(new Promise((_, reject) => plain.once("error", reject).end())).rejects.toThrow();
    expect((await running).text).toMatch(/data: \[DONE\]\n\n$/);
    await expectIdle(gateway);
  });

  it("counts its connections, and tells those that are too many", async () => {
    const gateway = await behindTls(await startFake(), { limits: { connections: 1 } });
    const first = connect({ port: Number(new URL(gateway.listenUrl).port), host: "127.0.0.1", ca: authority.cert });
    onTestFinished(() => void first.destroy());
    await new Promise((resolve) => first.once("secureConnect", resolve));
    const answer = await post(`${gateway.listenUrl}${PATH}`, CHAT);
    expect(answer).toMatchObject({ status: 503, text: expect.stringContaining("too_many_connections") });
    first.destroy();
    await until(async () => (await post(`${gateway.listenUrl}${PATH}`, CHAT)).status === 200);
  });

  it("ends with the gateway, whatever the connections are at", async () => {
    const e1 = await startFake(hold);
    const gateway = await behindTls(e1, { timeouts: { drainMs: 5_000 } });
    const port = Number(new URL(gateway.listenUrl).port);
    const unused = connect({ port, host: "127.0.0.1", ca: authority.cert });
    await new Promise((resolve) => unused.once("secureConnect", resolve));
    const running = post(`${gateway.listenUrl}${PATH}`, CHAT);
    const call = await e1.call(0);
    const closed = gateway.close();
    await new Promise((resolve) => unused.once("close", resolve));
    ok()(call);
    expect(await running).toMatchObject({ status: 200 });
    await closed;
  });

  it("ends by the drain limit also where a handshake was begun and never went on", async () => {
    const gateway = await behindTls(await startFake(), { timeouts: { drainMs: 300 } });
    const silent = connectTcp(Number(new URL(gateway.listenUrl).port), "127.0.0.1");
    silent.on("error", () => {});
    await new Promise((resolve) => silent.once("connect", resolve));
    await gateway.close();
  });
});

describe("clients' certificates", () => {
  it("must be of the configured authority where there is one", async () => {
    const clients = createAuthority("clients");
    const lines: string[] = [];
    const fake = await startFake();
    const config = testConfig([fake.url], { tls: listenerTls(certified, clients.cert) });
    const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
    const gateway = await runGateway(config, { log });
    await until(() => gateway.runtime.isReady);
    const url = `${gateway.listenUrl}${PATH}`;
    expect(await post(url, CHAT, clients.issue([]))).toMatchObject({ status: 200 });
    await expect(post(url, CHAT)).rejects.toThrow();
    await expect(post(url, CHAT, authority.issue([]))).rejects.toThrow();
    expect(fake.calls).toHaveLength(1);
    await until(() => lines.some((line) => line.includes("agree on TLS")));
    expect(lines.join("")).toMatch(/"reason":"[A-Z_]+"/);
  });
});

describe("TLS towards endpoints", () => {
  async function behind(tls: EndpointTls | undefined, lines: string[] = []): Promise<TestGateway> {
    const e1 = await startFake(ok(), { tls: certified });
    const endpoints = [testEndpoint("e1", e1.url, { tls })];
    const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
    return runGateway(testConfig([], { pool: { endpoints, models: ["m"] } }), { log });
  }

  it.each([
    { what: "its authority is not known", tls: undefined, reason: /UNABLE_TO_|SELF_SIGNED_/ },
    { what: "its authority is another", tls: { ca: createAuthority("other").cert }, reason: /UNABLE_TO_|SELF_SIGNED_/ },
    {
      what: "its name is another",
      tls: { ca: authority.cert, serverName: "other.test" },
      reason: /ERR_TLS_CERT_ALTNAME_INVALID/,
    },
  ])("finds an endpoint down, and says by which reason, if $what", async ({ tls, reason }) => {
    const lines: string[] = [];
    const gateway = await behind(tls && endpointTls(tls), lines);
    await until(() => lines.some((line) => reason.test(line)));
    expect(gateway.runtime.isReady).toBe(false);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({
      status: expect.toSatisfy((status: number) => status === 502 || status === 503),
    });
  });

  it.each([
    { what: "its authority is told", tls: { ca: authority.cert, isVerified: true } },
    { what: "its name is told", tls: { ca: authority.cert, serverName: "engine.test", isVerified: true } },
    { what: "it is not to be verified", tls: { isVerified: false } },
  ])("serves, and finds it well, and warns where nothing is verified, if $what", async ({ tls }) => {
    const lines: string[] = [];
    const gateway = await behind(endpointTls(tls), lines);
    await until(() => gateway.runtime.isReady);
    expect(lines.join("").includes('"endpoint":"e1","msg":"endpoint is not verified')).toBe(tls.isVerified === false);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
  });

  it("shows the balancer's certificate, with requests as with probes", async () => {
    const gateways = createAuthority("gateways");
    const shown = gateways.issue([]);
    const tls = { ...certified, ca: gateways.cert, requestCert: true, rejectUnauthorized: true };
    const e1 = await startFake(ok(), { tls });
    const known = endpointTls({ ca: authority.cert, cert: shown.cert, key: new Secret(shown.key) });
    const gateway = await startGateway([], { pool: { endpoints: [testEndpoint("e1", e1.url, { tls: known })] } });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    const unknown = endpointTls({ ca: authority.cert });
    const other = await runGateway(
      testConfig([], { pool: { endpoints: [testEndpoint("e1", e1.url, { tls: unknown })], models: ["m"] } }),
    );
    expect((await exchange(`${other.listenUrl}${PATH}`, { body: CHAT })).status).toBeGreaterThanOrEqual(502);
    expect(e1.calls).toHaveLength(1);
  });
});
