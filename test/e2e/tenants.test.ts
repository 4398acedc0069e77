import { describe, expect, it } from "vitest";
import type { Config } from "../../src/runtime/index.ts";
import { callAdmin } from "../support/admin-client.ts";
import { clientKey } from "../support/client-key.ts";
import { type FakeUpstream, hold, ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, type ClientCall, send } from "../support/http-client.ts";
import { type TestOverrides, testConfig, testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const TENANT = "x-tenant";

/** One place at one endpoint, which answers when the test says so. */
async function startWithOnePlace(overrides: TestOverrides = {}): Promise<{ e1: FakeUpstream; gateway: TestGateway }> {
  const e1 = await startFake(hold);
  const endpoints = [testEndpoint("e1", e1.url, { maxRequests: 1 })];
  const pool = { policy: { name: "least_connections", options: {} }, endpoints };
  return { e1, gateway: await startGateway([], { tenantKey: [`header:${TENANT}`], pool, ...overrides }) };
}

/** Sends requests one after the other, each held or sent before the next comes. */
async function queue(
  gateway: TestGateway,
  e1: FakeUpstream,
  senders: readonly Readonly<Record<string, string>>[],
): Promise<ClientCall[]> {
  const calls: ClientCall[] = [];
  for (const [i, headers] of senders.entries()) {
    calls.push(send(`${gateway.listenUrl}${PATH}`, { body: { ...CHAT, user: String(i) }, headers }));
    if (i === 0) await e1.call(0);
    else await until(() => gateway.runtime.pools[0]?.balancer.heldRequests === i);
  }
  return calls;
}

/** Answers one request after the other. @returns the order in which they came, by their numbers. */
async function serve(e1: FakeUpstream, count: number): Promise<number[]> {
  const order: number[] = [];
  for (let i = 0; i < count; i++) {
    const call = await e1.call(i);
    order.push(Number(JSON.parse(call.body.toString()).user));
    ok()(call);
  }
  return order;
}

describe("tenants that a header tells apart", () => {
  it("take turns, however many requests one of them sent before the other came", async () => {
    const { e1, gateway } = await startWithOnePlace();
    const [loud, quiet] = [{ [TENANT]: "loud" }, { [TENANT]: "quiet" }];
    const calls = await queue(gateway, e1, [loud, loud, loud, loud, loud, quiet, quiet]);
    const order = await serve(e1, calls.length);
    // The first had its place before there was anybody to share with.
    expect(order.slice(0, 5).filter((number) => number >= 5)).toHaveLength(2);
    expect(order.slice(5)).toEqual([3, 4]);
    for (const call of calls) expect(await call.answer()).toMatchObject({ status: 200 });
    await expectIdle(gateway);
  });

  it("are one without it, or where none is configured: who came first goes first", async () => {
    const configured: readonly Config["tenantKey"][] = [[`header:${TENANT}`], []];
    for (const tenantKey of configured) {
      const { e1, gateway } = await startWithOnePlace({ tenantKey });
      const [loud, quiet] = tenantKey.length > 0 ? [{}, {}] : [{ [TENANT]: "loud" }, { [TENANT]: "quiet" }];
      const calls = await queue(gateway, e1, [loud, loud, loud, quiet]);
      expect(await serve(e1, calls.length)).toEqual([0, 1, 2, 3]);
      for (const call of calls) await call.answer();
    }
  });

  it("are told apart as soon as a reload says how", async () => {
    const { e1, gateway } = await startWithOnePlace({ tenantKey: [] });
    const { config } = gateway.runtime;
    gateway.runtime.reconfigure({ ...config, tenantKey: ["body:metadata.team"] });
    const explained = await callAdmin(gateway, "POST", "/admin/explain", {
      body: { ...CHAT, metadata: { team: "blue" } },
    });
    expect(explained).toMatchObject({ status: 200, json: { profile: { tenant: "blue", priority: "normal" } } });
    expect(e1.calls).toHaveLength(0);
  });
});

describe("a priority that is asked for", () => {
  const keys = [clientKey("urgent", "urgent", { priority: "high" }), clientKey("plain", "plain")];
  const as = (key: string, priority: string): Record<string, string> => ({
    authorization: `Bearer ${key}`,
    "x-evenkeel-priority": priority,
  });

  it("goes before others with a key that may have it, and is the normal one with a key that may not", async () => {
    const { e1, gateway } = await startWithOnePlace({ keys });
    const senders = [as("plain", "normal"), as("plain", "low"), as("plain", "high"), as("urgent", "high")];
    const calls = await queue(gateway, e1, senders);
    expect(await serve(e1, calls.length)).toEqual([0, 3, 2, 1]);
    for (const call of calls) await call.answer();
    await expectIdle(gateway);
  });

  it("is no higher than normal where there are no keys", async () => {
    const { e1, gateway } = await startWithOnePlace();
    const asked = ["normal", "low", "normal", "high"].map((priority) => ({ "x-evenkeel-priority": priority }));
    const calls = await queue(gateway, e1, asked);
    expect(await serve(e1, calls.length)).toEqual([0, 2, 3, 1]);
    for (const call of calls) await call.answer();
    await expectIdle(gateway);
  });

  it("is explained for the key in the headers that are asked about", async () => {
    const { gateway } = await startWithOnePlace({ keys });
    const explain = async (headers: Record<string, string>): Promise<unknown> => {
      const { json } = await callAdmin(gateway, "POST", "/admin/explain", { body: CHAT, headers });
      const { tenant, priority } = (json as { profile: { tenant?: string; priority: string } }).profile;
      return [tenant, priority];
    };
    expect(await explain(as("urgent", "high"))).toEqual(["urgent", "high"]);
    expect(await explain(as("plain", "high"))).toEqual(["plain", "normal"]);
    expect(await explain({ "x-evenkeel-priority": "low" })).toEqual([undefined, "low"]);
  });
});

describe("sessions of two tenants", () => {
  it("do not meet by one key, and are explained by what their clients wrote", async () => {
    const fakes = await Promise.all(Array.from({ length: 4 }, () => startFake(ok())));
    const config = testConfig(
      fakes.map(({ url }) => url),
      { pool: { policy: { name: "session_affinity", options: { boundFactor: 100, floorSeconds: 3600 } } } },
    );
    const gateway = await startGateway(fakes, { tenantKey: [`header:${TENANT}`], pools: config.pools });
    const place = async (headers: Record<string, string>): Promise<string> => {
      const question = { body: CHAT, headers: { ...headers, "x-session-id": "1" } };
      const { json } = await callAdmin(gateway, "POST", "/admin/explain", question);
      const { chosen, profile } = json as { chosen: string; profile: { sessionKey: string } };
      expect(profile.sessionKey).toBe("1");
      return chosen;
    };
    const places = new Set<string>();
    for (let i = 0; i < 16; i++) {
      const tenant = { [TENANT]: `team-${i}` };
      places.add(await place(tenant));
      expect(await place(tenant)).toBe(await place(tenant));
    }
    expect(places.size).toBeGreaterThan(1);
    expect(await place({})).toBe(await place({}));
  });
});
