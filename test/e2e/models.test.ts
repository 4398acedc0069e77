import { describe, expect, it } from "vitest";
import { REFUSING_URL, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange } from "../support/http-client.ts";
import { testConfig, testEndpoint, testPool } from "../support/test-config.ts";
import { runGateway, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

async function listed(gateway: TestGateway): Promise<string[]> {
  const { text } = await exchange(`${gateway.listenUrl}/v1/models`, { method: "GET" });
  return JSON.parse(text).data.map(({ id }: { id: string }) => id);
}

describe("GET /v1/models", () => {
  it("merges what the endpoints serve and the aliases: sorted, each once, without asking anyone", async () => {
    const e1 = await startFake(undefined, { models: ["b", "a"] });
    const e2 = await startFake(undefined, { models: ["c", "b"] });
    const junk = await startFake();
    junk.onProbe = (_request, response) => response.writeHead(200).end("<html>hello</html>");
    const aliases = new Map([["x", "c"]]);
    const gateway = await runGateway(testConfig([e1.url, e2.url, REFUSING_URL, junk.url], { pool: { aliases } }));
    await until(() => gateway.runtime.directory.names.length === 4);
    const probesBefore = e1.probes.filter((path) => path === "/v1/models").length;
    for (let i = 0; i < 30; i++) expect(await listed(gateway)).toEqual(["a", "b", "c", "x"]);
    expect(e1.probes.filter((path) => path === "/v1/models").length - probesBefore).toBeLessThan(20);
    expect(await gateway.outcomes()).toEqual({ ok: 30 });
  });

  it("has the shape clients know", async () => {
    const gateway = await startGateway([await startFake()]);
    const answer = await exchange(`${gateway.listenUrl}/v1/models`, { method: "GET" });
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(answer.text)).toEqual({
      object: "list",
      data: [{ id: "m", object: "model", created: expect.any(Number), owned_by: "evenkeel-balancer" }],
    });
  });

  it("keeps the last known models of an endpoint that went down", async () => {
    const e1 = await startFake(undefined, { models: ["a"] });
    const e2 = await startFake(undefined, { models: ["b"] });
    const gateway = await startGateway([e1, e2]);
    await until(() => gateway.runtime.directory.names.length === 2);
    await e2.kill();
    await until(() => gateway.runtime.pools[0]?.balancer.members[1]?.availability === "down");
    expect(await listed(gateway)).toEqual(["a", "b"]);
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: { ...CHAT, model: "b" } });
    expect(answer.status).toBe(503);
  });

  it("is a 503 as long as nothing is known", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    const answer = await exchange(`${gateway.listenUrl}/v1/models`, { method: "GET" });
    expect(answer.status).toBe(503);
    expect(JSON.parse(answer.text).error).toMatchObject({ code: "no_available_endpoint" });
  });

  it("takes configured models over reported ones", async () => {
    const e1 = await startFake(undefined, { models: ["reported"] });
    const pools = [
      testPool([e1.url], { name: "pool", models: ["p"] }),
      testPool([], { name: "endpoint", endpoints: [testEndpoint("e1", e1.url, { models: ["e"] })] }),
    ];
    const gateway = await startGateway([], { pools });
    expect(await listed(gateway)).toEqual(["e", "p"]);
  });
});

describe("GET /v1/models/{id}", () => {
  it.each(["org/llama-3.1-8b", "org%2Fllama-3.1-8b", "fast"])("finds %s", async (id) => {
    const e1 = await startFake(undefined, { models: ["org/llama-3.1-8b"] });
    const gateway = await startGateway([e1], { pool: { aliases: new Map([["fast", "org/llama-3.1-8b"]]) } });
    await until(() => gateway.runtime.directory.names.length === 2);
    const answer = await exchange(`${gateway.listenUrl}/v1/models/${id}`, { method: "GET" });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toMatchObject({ id: decodeURIComponent(id), object: "model" });
  });

  it.each(["nope", "%E0%A4%A", "a/../b"])("does not find %s", async (id) => {
    const gateway = await startGateway([await startFake()]);
    await until(() => gateway.runtime.directory.names.length === 1);
    const answer = await exchange(`${gateway.listenUrl}/v1/models/${id}`, { method: "GET" });
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.text).error.code).toBe("model_not_found");
  });
});

describe("a model that nobody lists", () => {
  const UNKNOWN = { ...CHAT, model: "nope" };

  it("is a 404 once all endpoints that are up have told their models, whoever else was never reached", async () => {
    const gateway = await startGateway([await startFake(), REFUSING_URL]);
    await until(() => gateway.runtime.pools[0]?.balancer.members[1]?.availability === "down");
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: UNKNOWN });
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.text).error.code).toBe("model_not_found");
  });

  it("is tried where an endpoint is up that tells none", async () => {
    const silent = await startFake();
    silent.models = undefined;
    silent.onProbe = (_request, response) => response.writeHead(200, { "content-type": "application/json" }).end("{}");
    const gateway = await startGateway([await startFake(), silent]);
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: UNKNOWN });
    expect(answer).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e2" } });
  });

  it("is a 503 as long as nobody who could tell is up", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    await until(() => gateway.runtime.pools[0]?.balancer.members[0]?.availability === "down");
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: UNKNOWN });
    expect(answer.status).toBe(503);
  });
});

describe("a pool's configured models", () => {
  it("are served by engines that go by other names", async () => {
    const e1 = await startFake(undefined, { models: ["/models/llama.gguf"] });
    const gateway = await startGateway([e1], { pool: { models: ["llama"] } });
    await until(() => e1.probes.length > 1);
    const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: { ...CHAT, model: "llama" } });
    expect(answer.status).toBe(200);
  });

  it("go to those of their engines that list them", async () => {
    const fakes = [await startFake(undefined, { models: ["a"] }), await startFake(undefined, { models: ["b"] })];
    const gateway = await startGateway(fakes, { pool: { models: ["a", "b"] } });
    await until(() => gateway.runtime.pools[0]?.balancer.members.every(({ models }) => models !== undefined) === true);
    for (let i = 0; i < 4; i++) {
      const answer = await exchange(`${gateway.listenUrl}/v1/chat/completions`, { body: { ...CHAT, model: "b" } });
      expect(answer.headers["x-evenkeel-endpoint"]).toBe("e2");
    }
  });
});

describe("a balancer behind a balancer", () => {
  it("is found well and served, without being told what it is", async () => {
    const inner = await startGateway([await startFake()]);
    const outer = await startGateway([inner.listenUrl]);
    await until(() => outer.runtime.pools[0]?.balancer.members[0]?.availability === "ready");
    const answer = await exchange(`${outer.listenUrl}/v1/chat/completions`, { body: CHAT });
    expect(answer).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": "e1" } });
    // Probes go on finding it well, and as often as they are sent.
    await until(async () => (await inner.metric("evenkeel_requests_total", { route: "models", outcome: "ok" })) > 3);
    expect(outer.runtime.pools[0]?.balancer.members[0]?.availability).toBe("ready");
    expect(await inner.metric("evenkeel_requests_total", { route: "other" })).toBeLessThan(10);
  });
});
