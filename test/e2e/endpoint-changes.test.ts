import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { callAdmin, endpointPath } from "../support/admin-client.ts";
import { DONE_EVENT, headThenHold, ok, REFUSING_URL, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint, testPool } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

async function chat({ listenUrl }: TestGateway): Promise<number> {
  return (await exchange(`${listenUrl}${PATH}`, { body: CHAT })).status;
}

describe("an endpoint put by the admin API", () => {
  it("is added, gets requests, and stays over a reload of the file", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const config = testConfig([e1.url]);
    const gateway = await runGateway(config);
    await until(() => gateway.runtime.isReady);
    const added = await callAdmin(gateway, "PUT", endpointPath("e2"), { url: e2.url, weight: 2 });
    expect(added).toMatchObject({ status: 201, json: { id: "e2", url: e2.url, weight: 2, isDraining: false } });
    for (let i = 0; i < 4; i++) expect(await chat(gateway)).toBe(200);
    expect(e2.calls.length).toBe(2);
    const health = { ...config.health, unhealthyAfter: 2 };
    expect(gateway.runtime.reconfigure({ ...config, health })).toMatchObject({ kind: "applied" });
    for (let i = 0; i < 4; i++) expect(await chat(gateway)).toBe(200);
    expect(e2.calls.length).toBe(4);
  });

  it("takes the place of the one with its id, whose work and health stay", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    const changed = await callAdmin(gateway, "PUT", endpointPath("e1"), { url: e1.url, maxRequests: 7 });
    expect(changed).toMatchObject({
      status: 200,
      json: { id: "e1", availability: "ready", maxRequests: 7, work: { requests: 1 } },
    });
    call.response.write(tokenEvent(0));
    call.response.end(DONE_EVENT);
    expect(await client.answer()).toMatchObject({ isWhole: true });
    await expectIdle(gateway);
  });

  it("may be where the one of before is not: that one's streams finish", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake(ok())];
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    expect(await callAdmin(gateway, "PUT", endpointPath("e1"), { url: e2.url })).toMatchObject({ status: 200 });
    expect(await chat(gateway)).toBe(200);
    expect(e2.calls).toHaveLength(1);
    call.response.write(tokenEvent(0));
    call.response.end(DONE_EVENT);
    expect(await client.answer()).toMatchObject({ isWhole: true, text: tokenEvent(0) + DONE_EVENT });
    await expectIdle(gateway);
    await until(() => e1.openSockets === 0);
  });

  it.each([
    { what: "no JSON", body: "{", status: 400, error: /expected JSON/ },
    { what: "no URL", body: {}, status: 400, error: /url/ },
    { what: "a weight below 0", body: { url: "http://h:1", weight: -1 }, status: 400, error: /weight is -1/ },
    { what: "an unknown setting", body: { url: "http://h:1", wieght: 1 }, status: 400, error: /wieght/ },
    { what: "another id", body: { url: "http://h:1", id: "e9" }, status: 409, error: /"e9", expected "e2"/ },
    { what: "the URL of another", body: { url: REFUSING_URL }, status: 409, error: /e1 has it/ },
    { what: "too much", body: { url: "x".repeat(100_000) }, status: 413, error: /at most/ },
  ])("is refused with $what, and changes nothing", async ({ body, status, error }) => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    const answer = await callAdmin(gateway, "PUT", endpointPath("e2"), body);
    expect(answer.status).toBe(status);
    expect((answer.json as { error: string }).error).toMatch(error);
    expect(gateway.runtime.pools[0]?.balancer.members).toHaveLength(1);
  });
});

describe("an endpoint removed by the admin API", () => {
  it("finishes its streams, gets nothing new, and stays away until it is put again", async () => {
    const [e1, e2] = [await startFake(headThenHold), await startFake(ok())];
    const config = testConfig([e1.url, e2.url]);
    const gateway = await runGateway(config);
    await until(
      () => gateway.runtime.pools[0]?.balancer.members.every(({ availability }) => availability === "ready") === true,
    );
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await until(() => e1.calls.length + e2.calls.length === 1);
    if (e1.calls.length === 0) send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await e1.call(0);
    expect(await callAdmin(gateway, "DELETE", endpointPath("e1"))).toMatchObject({
      status: 200,
      json: { removed: "e1", requests: 1 },
    });
    gateway.runtime.reconfigure({ ...config, health: { ...config.health, unhealthyAfter: 2 } });
    for (let i = 0; i < 3; i++) expect(await chat(gateway)).toBe(200);
    expect(e1.calls).toHaveLength(1);
    call.response.end(tokenEvent(0) + DONE_EVENT);
    await client.answer();
    await until(() => e1.openSockets === 0);
    expect(await callAdmin(gateway, "DELETE", endpointPath("e1"))).toMatchObject({ status: 404 });
    expect(await callAdmin(gateway, "PUT", endpointPath("e1"), { url: e1.url })).toMatchObject({ status: 201 });
  });
});

describe("draining an endpoint", () => {
  it("sends nothing new there until it is taken back, reloads or not", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const config = testConfig([e1.url, e2.url]);
    const gateway = await runGateway(config);
    await until(() => gateway.runtime.isReady);
    expect(await callAdmin(gateway, "POST", `${endpointPath("e1")}/drain`)).toMatchObject({
      status: 200,
      json: { id: "e1", isDraining: true },
    });
    gateway.runtime.reconfigure({ ...config, health: { ...config.health, unhealthyAfter: 2 } });
    for (let i = 0; i < 4; i++) expect(await chat(gateway)).toBe(200);
    expect(e1.calls).toHaveLength(0);
    expect(await gateway.metric("evenkeel_endpoint_draining", { endpoint: "e1" })).toBe(1);
    await callAdmin(gateway, "POST", `${endpointPath("e2")}/drain`);
    expect(await chat(gateway)).toBe(503);
    expect((await callAdmin(gateway, "GET", "/readyz")).status).toBe(503);
    await callAdmin(gateway, "POST", `${endpointPath("e1")}/undrain`);
    expect(await chat(gateway)).toBe(200);
    expect(e1.calls).toHaveLength(1);
  });
});

describe("the weight of an endpoint", () => {
  it("can be changed, and stays changed", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const config = testConfig([e1.url, e2.url]);
    const gateway = await runGateway(config);
    await until(() => gateway.runtime.isReady);
    expect(await callAdmin(gateway, "PATCH", endpointPath("e1"), { weight: 0 })).toMatchObject({
      status: 200,
      json: { id: "e1", weight: 0 },
    });
    gateway.runtime.reconfigure({ ...config, health: { ...config.health, unhealthyAfter: 2 } });
    for (let i = 0; i < 4; i++) expect(await chat(gateway)).toBe(200);
    expect(e1.calls).toHaveLength(0);
    expect(await callAdmin(gateway, "GET", endpointPath("e1"))).toMatchObject({ status: 200, json: { weight: 0 } });
  });

  it.each([[{}], [{ weight: "1" }], [{ weight: -1 }], [{ weight: 1, url: "http://h:1" }], [3]])(
    "cannot be %j",
    async (body) => {
      const gateway = await runGateway(testConfig([REFUSING_URL]));
      const { status, json } = await callAdmin(gateway, "PATCH", endpointPath("e1"), body);
      expect(status).toBe(400);
      expect((json as { error: string }).error).toMatch(/weight/);
      expect(gateway.runtime.pools[0]?.balancer.members[0]?.endpoint.weight).toBe(1);
    },
  );
});

describe("the admin API", () => {
  it("names the pools and endpoints there are where one is asked for that is not", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    expect(await callAdmin(gateway, "DELETE", endpointPath("e9"))).toMatchObject({
      status: 404,
      json: { error: "no endpoint e9 in pool default", endpoints: ["e1"] },
    });
    expect(await callAdmin(gateway, "POST", "/admin/pools/p/endpoints/e1/drain")).toMatchObject({
      status: 404,
      json: { error: "no pool p", pools: ["default"] },
    });
  });

  it("takes ids with every character that an id may have", async () => {
    const id = "[::1]:8000/a@b";
    const pools = [testPool([], { endpoints: [testEndpoint(id, REFUSING_URL)] })];
    const gateway = await runGateway(testConfig([], { pools }));
    expect(await callAdmin(gateway, "GET", endpointPath(id))).toMatchObject({ status: 200, json: { id } });
  });

  it.each([
    ["POST", "/healthz", "GET"],
    ["DELETE", "/admin/endpoints", "GET"],
    ["GET", "/admin/reload", "POST"],
    ["POST", endpointPath("e1"), "GET, PUT, PATCH, DELETE"],
    ["GET", `${endpointPath("e1")}/drain`, "POST"],
  ])("refuses %s %s, and says what it takes", async (method, path, allowed) => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    const { status, headers } = await callAdmin(gateway, method, path);
    expect(status).toBe(405);
    expect(headers.get("allow")).toBe(allowed);
  });

  it("asks for a key where there are some, except whether the process lives and can serve", async () => {
    const adminKeys = [{ id: "ops", sha256: createHash("sha256").update("secret").digest() }];
    const gateway = await runGateway(testConfig([REFUSING_URL], { adminKeys }));
    for (const path of ["/metrics", "/admin/endpoints", endpointPath("e1"), "/nowhere"]) {
      expect(await callAdmin(gateway, "GET", path)).toMatchObject({ status: 401 });
      const wrong = await callAdmin(gateway, "GET", path, undefined, { authorization: "Bearer guess" });
      expect(wrong.status).toBe(401);
    }
    expect((await callAdmin(gateway, "GET", "/livez")).status).toBe(200);
    expect((await callAdmin(gateway, "GET", "/readyz")).status).toBe(503);
    const headers = { authorization: "Bearer secret" };
    expect((await callAdmin(gateway, "GET", "/admin/endpoints", undefined, headers)).status).toBe(200);
    const config = gateway.runtime.config;
    const others = [{ id: "ops", sha256: createHash("sha256").update("other").digest() }];
    gateway.runtime.reconfigure({ ...config, adminKeys: others });
    expect((await callAdmin(gateway, "GET", "/admin/endpoints", undefined, headers)).status).toBe(401);
  });

  it("says why it cannot reload where it was not told what", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    expect(await callAdmin(gateway, "POST", "/admin/reload")).toMatchObject({ status: 409 });
  });
});
