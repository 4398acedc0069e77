import { describe, expect, it } from "vitest";
import { type Checked, readEndpoint } from "../../src/config/index.ts";
import type { Config } from "../../src/runtime/index.ts";
import { callAdmin } from "../support/admin-client.ts";
import {
  DONE_EVENT,
  type FakeUpstream,
  headThenHold,
  hold,
  ok,
  REFUSING_URL,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, type ClientCall, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint, testPool } from "../support/test-config.ts";
import { expectIdle, runGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** A balancer whose configuration the test writes anew. */
interface Reloaded {
  readonly gateway: TestGateway;
  /** Puts other endpoints or pools into the configuration and has it read again. */
  reload(config: Partial<Config>): ReturnType<typeof callAdmin>;
  /** From now on the configuration cannot be used. */
  spoil(): ReturnType<typeof callAdmin>;
}

async function startReloaded(first: Config): Promise<Reloaded> {
  let current: Checked<Config> = { ok: true, value: first };
  const gateway = await runGateway(first, { source: { file: undefined, load: () => current } });
  await until(() => gateway.runtime.isReady && gateway.runtime.directory.names.length > 0);
  const reload = () => callAdmin(gateway, "POST", "/admin/reload");
  return {
    gateway,
    reload: (config) => {
      current = { ok: true, value: { ...first, ...config } };
      return reload();
    },
    spoil: () => {
      const problem = { path: "policy", source: "f.yaml:1:9", found: '"fastest"', expected: "a policy" };
      current = { ok: false, problems: [problem] };
      return reload();
    },
  };
}

function pool(
  fakes: readonly (FakeUpstream | string)[],
  overrides: Parameters<typeof testPool>[1] = {},
): Pick<Config, "pools"> {
  return {
    pools: [
      testPool(
        fakes.map((fake) => (typeof fake === "string" ? fake : fake.url)),
        overrides,
      ),
    ],
  };
}

async function startStreams({ listenUrl }: TestGateway, e1: FakeUpstream, count: number): Promise<ClientCall[]> {
  const before = e1.calls.length;
  const clients = Array.from({ length: count }, () => send(`${listenUrl}${PATH}`, { body: STREAMED_CHAT }));
  for (let i = 0; i < count; i++) (await e1.call(before + i)).response.write(tokenEvent(0));
  await Promise.all(clients.map((client) => client.receives(tokenEvent(0))));
  return clients;
}

function requestsAt({ runtime }: TestGateway, id: string): number | undefined {
  return runtime.pools[0]?.balancer.members.find(({ endpoint }) => endpoint.id === id)?.account.requests;
}

describe("work in flight", () => {
  it("of an endpoint that is removed and comes back is its work again, and ends at zero", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake(headThenHold)];
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    const old = await startStreams(gateway, e1, 5);
    expect(await reload({ pools: [testPool([], { endpoints: [testEndpoint("e2", e2.url)] })] })).toMatchObject({
      status: 200,
    });
    expect(requestsAt(gateway, "e1")).toBeUndefined();
    await reload(pool([e1]));
    const fresh = await startStreams(gateway, e1, 2);
    expect(requestsAt(gateway, "e1")).toBe(7);
    for (const client of old) client.abort();
    await until(() => requestsAt(gateway, "e1") === 2);
    for (const client of fresh) client.abort();
    await expectIdle(gateway);
  });

  it("survives any number of reloads, byte by byte", async () => {
    const [e1, e2, e3] = [await startFake(headThenHold), await startFake(headThenHold), await startFake(headThenHold)];
    const { gateway, reload } = await startReloaded(testConfig([e1.url, e2.url]));
    const clients = Array.from({ length: 6 }, () => send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT }));
    await until(() => e1.calls.length === 3 && e2.calls.length === 3);
    const calls = [...e1.calls, ...e2.calls];
    for (let i = 0; i < 20; i++) {
      for (const { response } of calls) response.write(tokenEvent(i));
      expect(await reload(pool(i % 2 === 0 ? [e1, e2, e3] : [e1, e2]))).toMatchObject({ status: 200 });
    }
    // Also those of an endpoint that is gone for good.
    await reload(pool([e1]));
    for (const { response } of calls) response.end(DONE_EVENT);
    const answers = await Promise.all(clients.map((client) => client.answer()));
    const text = Array.from({ length: 20 }, (_, i) => tokenEvent(i)).join("") + DONE_EVENT;
    for (const answer of answers) expect(answer).toMatchObject({ isWhole: true, text });
    await expectIdle(gateway);
    await until(() => e2.openSockets === 0);
  });

  it("is told of an endpoint that is gone as long as there is some", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake()];
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    const [client] = await startStreams(gateway, e1, 1);
    await reload({ pools: [testPool([], { endpoints: [testEndpoint("e2", e2.url)] })] });
    const listing = async (): Promise<unknown> => (await callAdmin(gateway, "GET", "/admin/endpoints")).json;
    expect(await listing()).toMatchObject({
      pools: [{ endpoints: [{ id: "e2" }], leavingEndpoints: [{ id: "e1", requests: 1, connections: 1 }] }],
    });
    expect(await gateway.metric("evenkeel_leaving_requests")).toBe(1);
    client?.abort();
    await until(async () => (await gateway.metric("evenkeel_leaving_requests")) === 0);
    await until(async () => JSON.stringify(await listing()).includes('"leavingEndpoints":[]'));
    await until(() => e1.openSockets === 0);
  });
});

describe("health", () => {
  it("of an endpoint that comes back before it is done is what it was", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake()];
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    const [client] = await startStreams(gateway, e1, 1);
    const before = gateway.runtime.pools[0]?.balancer.members[0];
    const others = { pools: [testPool([], { endpoints: [testEndpoint("e2", e2.url)] })] };
    await reload(others);
    await reload(pool([e1]));
    expect(gateway.runtime.pools[0]?.balancer.members[0]).toBe(before);
    expect(before?.availability).toBe("ready");
    expect(before?.models).toEqual(new Set(["m"]));
    const probes = e1.probes.length;
    await until(() => e1.probes.length > probes + 1);
    client?.abort();
    await expectIdle(gateway);
    await reload(others);
    await reload(pool([e1]));
    expect(gateway.runtime.pools[0]?.balancer.members[0]).not.toBe(before);
  });

  it("of endpoints that stay is kept, and those that are gone are not probed any more", async () => {
    const [e1, e3] = [await startFake(), await startFake()];
    const { gateway, reload, spoil } = await startReloaded(testConfig([e1.url, REFUSING_URL]));
    const availabilities = (): Record<string, string> =>
      Object.fromEntries(
        gateway.runtime.pools[0]?.balancer.members.map(({ endpoint, availability }) => [endpoint.id, availability]) ??
          [],
      );
    await until(() => availabilities().e2 === "down");
    for (let i = 0; i < 20; i++) {
      await reload(pool(i % 2 === 0 ? [e1, REFUSING_URL, e3] : [e1, REFUSING_URL]));
      expect(availabilities()).toMatchObject({ e1: "ready", e2: "down" });
    }
    await until(() => e3.openSockets === 0);
    const probes = e3.probes.length;
    const probesOfE1 = e1.probes.length;
    await until(() => e1.probes.length > probesOfE1 + 2);
    expect(e3.probes).toHaveLength(probes);
    expect(await spoil()).toMatchObject({ status: 400 });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
  });

  it("costs no timer and no listener more after many reloads", async () => {
    const [e1, e3] = [await startFake(), await startFake()];
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    const handles = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const cycle = async (): Promise<void> => {
      await reload(pool([e1, e3]));
      await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
      await reload(pool([e1]));
    };
    await cycle();
    await until(() => e3.openSockets === 0);
    const before = handles();
    for (let i = 0; i < 20; i++) await cycle();
    await until(() => e3.openSockets === 0);
    await until(() => handles() <= before);
  });
});

describe("a reload", () => {
  it("takes on what an endpoint is, and keeps what is known of it", async () => {
    const e1 = await startFake(ok());
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    const member = gateway.runtime.pools[0]?.balancer.members[0];
    await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(e1.calls.at(-1)?.headers.authorization).toBeUndefined();
    const keyed = readEndpoint({ url: e1.url, id: "e1", apiKey: "k2", weight: 3, models: ["n"] });
    if (!keyed.ok) throw new Error("not an endpoint");
    await reload({ pools: [testPool([], { endpoints: [keyed.value] })] });
    expect(gateway.runtime.directory.names).toEqual(["n"]);
    expect(gateway.runtime.pools[0]?.balancer.members[0]).toBe(member);
    expect(member?.endpoint.weight).toBe(3);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: { ...CHAT, model: "n" } });
    expect(answer.status).toBe(200);
    expect(e1.calls.at(-1)?.headers.authorization).toBe("Bearer k2");
    expect(member?.availability).toBe("ready");
  });

  it("adds a pool and removes one, whose requests finish", async () => {
    const [e1, e2] = [await startFake(headThenHold, { models: ["m"] }), await startFake(ok(), { models: ["n"] })];
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    const [client] = await startStreams(gateway, e1, 1);
    const other = { ...testPool([e2.url]), name: "other" };
    await reload({ pools: [other] });
    await until(() => gateway.runtime.directory.names.includes("n"));
    expect(gateway.runtime.directory.names).toEqual(["n"]);
    expect(gateway.runtime.isReady).toBe(true);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: { ...CHAT, model: "n" } })).toMatchObject({
      status: 200,
    });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 404 });
    const [call] = e1.calls;
    call?.response.end(DONE_EVENT);
    expect(await client?.answer()).toMatchObject({ isWhole: true, text: tokenEvent(0) + DONE_EVENT });
    await until(() => gateway.runtime.leavingPools.length === 0);
    const probes = e1.probes.length;
    await until(() => e1.openSockets === 0);
    expect(e1.probes.length).toBeLessThanOrEqual(probes + 1);
  });

  it("brings a pool back with its work", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake(ok(), { models: ["n"] })];
    const config = testConfig([e1.url]);
    const { gateway, reload } = await startReloaded(config);
    const [client] = await startStreams(gateway, e1, 1);
    await reload({ pools: [{ ...testPool([e2.url]), name: "other" }] });
    await reload({ pools: config.pools });
    expect(requestsAt(gateway, "e1")).toBe(1);
    expect(gateway.runtime.leavingPools.map(({ name }) => name)).not.toContain("default");
    const probes = e1.probes.length;
    await until(() => e1.probes.length > probes + 1);
    client?.abort();
    await expectIdle(gateway);
  });

  it("does not take the process out of service for a pool that has just been added", async () => {
    const e1 = await startFake();
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    await reload({ pools: [testPool([e1.url]), { ...testPool([REFUSING_URL]), name: "dead", models: ["x"] }] });
    const { status, json } = await callAdmin(gateway, "GET", "/readyz");
    expect(status).toBe(200);
    expect(json).toMatchObject({ pools: { default: true, dead: false } });
  });

  it("changes the policy of a pool under its work, and releases whom the new one does not hold", async () => {
    const [e1, e2] = [await startFake(hold), await startFake(hold)];
    const least = { policy: { name: "least_connections", options: {} } };
    const { gateway, reload } = await startReloaded(testConfig([e1.url, e2.url]));
    const clients = [send(`${gateway.listenUrl}${PATH}`, { body: CHAT })];
    await until(() => e1.calls.length + e2.calls.length === 1);
    const [idle, busy] = e1.calls.length === 0 ? [e1, e2] : [e2, e1];
    await reload(pool([e1, e2], least));
    expect(gateway.runtime.pools[0]?.balancer.policyName).toBe("least_connections");
    // The lease of before counts: twice the idle one would be wrong, and once it is no chance.
    clients.push(send(`${gateway.listenUrl}${PATH}`, { body: CHAT }));
    await until(() => idle.calls.length === 1);
    expect(busy.calls).toHaveLength(1);
    for (const client of clients) client.abort();
    await expectIdle(gateway);
  });

  it("changes nothing when a setting needs a restart, and says which", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const { gateway, reload } = await startReloaded(testConfig([e1.url]));
    const { status, json } = await reload({ ...pool([e1, e2]), listen: { host: "127.0.0.1", port: 1 } });
    expect(status).toBe(409);
    expect(json).toMatchObject({ settings: ["listen"], error: expect.stringContaining("need a restart: listen") });
    expect(gateway.runtime.pools[0]?.balancer.members).toHaveLength(1);
    expect(await gateway.metric("evenkeel_config_reloads_total", { result: "needs_restart" })).toBe(1);
    expect(await gateway.metric("evenkeel_config_last_reload_success")).toBe(0);
  });

  it("keeps the configuration of before when the new one is wrong, says what is, and counts it", async () => {
    const e1 = await startFake();
    const { gateway, reload, spoil } = await startReloaded(testConfig([e1.url]));
    expect(await gateway.metric("evenkeel_config_last_reload_success")).toBe(1);
    const { status, json } = await spoil();
    expect(status).toBe(400);
    expect(json).toMatchObject({
      error: expect.stringContaining('f.yaml:1:9: policy is "fastest", expected a policy'),
      problems: [{ path: "policy", source: "f.yaml:1:9", found: '"fastest"', expected: "a policy" }],
    });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    expect(await gateway.metric("evenkeel_config_reloads_total", { result: "invalid" })).toBe(1);
    expect(await gateway.metric("evenkeel_config_last_reload_success")).toBe(0);
    expect(await reload({})).toMatchObject({ status: 200, json: { result: "unchanged" } });
    expect(await gateway.metric("evenkeel_config_last_reload_success")).toBe(1);
  });

  it("takes on limits, paths and time-outs for requests that come", async () => {
    const e1 = await startFake(ok());
    const config = testConfig([e1.url]);
    const { gateway, reload } = await startReloaded(config);
    const large = { ...CHAT, user: "x".repeat(20_000) };
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: large })).toMatchObject({ status: 200 });
    expect(await exchange(`${gateway.listenUrl}/x`, { body: CHAT })).toMatchObject({ status: 404 });
    const limits = { ...config.limits, bodyBytes: 10_000 };
    expect(await reload({ limits, passthrough: ["/x"] })).toMatchObject({
      status: 200,
      json: { result: "applied", changed: ["passthrough", "limits"] },
    });
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: large })).toMatchObject({ status: 413 });
    expect(await exchange(`${gateway.listenUrl}/x`, { body: CHAT })).toMatchObject({ status: 200 });
  });
});
