import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { RuntimeParts } from "../../src/runtime/index.ts";
import { callAdmin, endpointPath } from "../support/admin-client.ts";
import { DONE_EVENT, type FakeUpstream, headThenHold, ok, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint, testPool } from "../support/test-config.ts";
import { expectIdle, runGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** Names that stand for what the test says, and a clock that it may put forward. */
class Names {
  readonly addresses = new Map<string, readonly string[]>();
  aheadMs = 0;

  get parts(): RuntimeParts {
    return {
      clock: { nowMs: () => performance.now() + this.aheadMs },
      resolver: {
        resolve: async (host) => {
          const found = this.addresses.get(host);
          if (found === undefined) throw Object.assign(new Error(host), { code: "ENOTFOUND" });
          return found;
        },
      },
    };
  }
}

function portOf(fake: FakeUpstream): number {
  return Number(new URL(fake.url).port);
}

async function chat({ listenUrl }: TestGateway): Promise<number> {
  return (await exchange(`${listenUrl}${PATH}`, { body: CHAT })).status;
}

function ids({ runtime }: TestGateway): readonly string[] {
  return runtime.pools[0]?.balancer.members.map(({ endpoint }) => endpoint.id) ?? [];
}

describe("a name whose every address is an endpoint", () => {
  const source = (port: number) =>
    ({ kind: "dns", host: "engines", port, scheme: "http", basePath: "", intervalMs: 20 }) as const;

  it("is followed from nothing to one address and on to the next, whose streams finish", async () => {
    const one = await startFake(headThenHold);
    const two = await startFake(ok(), { host: "127.0.0.2", port: portOf(one) });
    const names = new Names();
    const pools = [testPool([], { discovery: [source(portOf(one))] })];
    const gateway = await runGateway(testConfig([], { pools }), names.parts);
    expect((await callAdmin(gateway, "GET", "/livez")).status).toBe(200);
    expect((await callAdmin(gateway, "GET", "/readyz")).status).toBe(503);
    const refused = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(refused.status).toBe(503);
    expect(refused.headers["retry-after"]).toMatch(/^\d+$/);

    names.addresses.set("engines", ["127.0.0.1"]);
    await until(() => gateway.runtime.isReady && gateway.runtime.directory.names.length > 0);
    expect(ids(gateway)).toEqual([`127.0.0.1:${portOf(one)}`]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await one.call(0);

    names.addresses.set("engines", ["127.0.0.2"]);
    await until(() => ids(gateway).includes(`127.0.0.2:${portOf(one)}`));
    expect(ids(gateway)).toHaveLength(1);
    expect(await chat(gateway)).toBe(200);
    expect(two.calls).toHaveLength(1);
    call.response.end(tokenEvent(0) + DONE_EVENT);
    expect(await client.answer()).toMatchObject({ isWhole: true });
    await until(() => one.openSockets === 0);

    names.addresses.delete("engines");
    const probes = two.probes.length;
    await until(() => two.probes.length > probes + 1);
    expect(await chat(gateway)).toBe(200);
    await expectIdle(gateway);
  });

  it("may be drained by address like any other endpoint", async () => {
    const one = await startFake();
    const names = new Names();
    names.addresses.set("engines", ["127.0.0.1"]);
    const pools = [testPool([], { discovery: [source(portOf(one))] })];
    const gateway = await runGateway(testConfig([], { pools }), names.parts);
    await until(() => gateway.runtime.isReady);
    const path = `${endpointPath(`127.0.0.1:${portOf(one)}`)}/drain`;
    expect(await callAdmin(gateway, "POST", path)).toMatchObject({ status: 200, json: { isDraining: true } });
  });
});

describe("a file that lists endpoints", () => {
  it("is followed beside those that are configured; a wrong one changes nothing", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const folder = mkdtempSync(join(tmpdir(), "evenkeel-found-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "found.json");
    writeFileSync(path, JSON.stringify([{ url: e2.url, id: "found" }]));
    const pools = [testPool([e1.url], { discovery: [{ kind: "file", path }] })];
    const gateway = await runGateway(testConfig([], { pools }));
    await until(() => ids(gateway).length === 2);
    expect(ids(gateway)).toEqual(["e1", "found"]);
    await until(() => gateway.runtime.pools[0]?.balancer.members.every((one) => one.availability === "ready") === true);
    for (let i = 0; i < 4; i++) expect(await chat(gateway)).toBe(200);
    expect(e2.calls).toHaveLength(2);
  });
});

describe("an endpoint whose name moves to another address", () => {
  async function start(): Promise<{ a: FakeUpstream; b: FakeUpstream; names: Names; gateway: TestGateway }> {
    const a = await startFake(headThenHold);
    const b = await startFake(ok(), { host: "127.0.0.2", port: portOf(a) });
    const names = new Names();
    names.addresses.set("engine.test", ["127.0.0.1"]);
    const pools = [testPool([], { endpoints: [testEndpoint("e1", `http://engine.test:${portOf(a)}`)] })];
    const gateway = await runGateway(testConfig([], { pools, timeouts: { upstreamKeepAliveMs: 60_000 } }), names.parts);
    await until(() => gateway.runtime.isReady && gateway.runtime.directory.names.length > 0);
    return { a, b, names, gateway };
  }

  it("is followed within seconds, though connections are kept alive; streams of before finish", async () => {
    const { a, b, names, gateway } = await start();
    a.next(headThenHold, ok());
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await a.call(0);
    expect(await chat(gateway)).toBe(200);
    expect(await gateway.metric("evenkeel_endpoint_connections")).toBe(2);
    names.addresses.set("engine.test", ["127.0.0.2"]);
    names.aheadMs += 6_000;
    a.behave(ok());
    // The one that notices may still go to the address of before.
    for (let i = 0; i < 2; i++) expect(await chat(gateway)).toBe(200);
    await until(() => a.openSockets === 1);
    const before = a.calls.length;
    for (let i = 0; i < 5; i++) expect(await chat(gateway)).toBe(200);
    expect(a.calls).toHaveLength(before);
    expect(b.calls.length).toBeGreaterThanOrEqual(5);
    call.response.end(tokenEvent(0) + DONE_EVENT);
    expect(await client.answer()).toMatchObject({ isWhole: true });
    await until(() => a.openSockets === 0);
    await expectIdle(gateway);
  });

  it("is found there by the very next request when the old address refuses", async () => {
    const { a, b, names, gateway } = await start();
    a.behave(ok());
    expect(await chat(gateway)).toBe(200);
    names.addresses.set("engine.test", ["127.0.0.2"]);
    await a.kill();
    expect(await chat(gateway)).toBe(200);
    expect(b.calls).toHaveLength(1);
  });

  it("stays where it was while the name cannot be resolved", async () => {
    const { a, names, gateway } = await start();
    a.behave(ok());
    expect(await chat(gateway)).toBe(200);
    names.addresses.delete("engine.test");
    names.aheadMs += 6_000;
    for (let i = 0; i < 3; i++) expect(await chat(gateway)).toBe(200);
    expect(a.calls).toHaveLength(4);
  });
});
