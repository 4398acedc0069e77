import { describe, expect, it } from "vitest";
import { answer, hold, type Script } from "../../test/support/scripted-server.ts";
import { until } from "../../test/support/until.ts";
import { METRICS, MODELS, serve, VLLM, watch } from "../../test/support/watched-poller.ts";

describe("metrics", () => {
  it("become signals with the time they were read", async () => {
    const beforeMs = performance.now();
    const server = await serve(VLLM);
    const { signals } = watch({ url: server.url });
    await until(() => signals.length > 0);
    expect(signals[0]).toMatchObject({ runningRequests: 3, promptTokensTotal: 100, waitingRequests: undefined });
    expect(signals[0]?.observedAtMs).toBeGreaterThanOrEqual(beforeMs);
    expect(signals[0]?.observedAtMs).toBeLessThanOrEqual(performance.now());
  });

  it.each<[string, Script, string]>([
    ["that fail", answer(500), "answered 500"],
    ["that are garbage", answer(200, "\u0000{}{}\n<<<"), "no metric of a known name"],
    ["of another engine", answer(200, "sglang:num_running_reqs 1"), "no metric of a known name"],
    ["of 10 MB", answer(200, "x".repeat(10_000_000)), "answer over 4194304 bytes"],
  ])("%s are counted each time, logged once, and do not harm health", async (_name, script, reason) => {
    const server = await serve({ ...VLLM, "/metrics": script });
    const seen = watch({ url: server.url });
    await until(() => seen.scrapeFailures.length >= 3);
    expect(seen.scrapeFailures[0]).toBe(reason);
    expect(seen.log).toHaveLength(1);
    expect(seen.outcomes.every(({ kind }) => kind === "ok")).toBe(true);
    expect(seen.signals).toEqual([]);
  });

  it("that never come are a failed scrape", async () => {
    const server = await serve({ ...VLLM, "/metrics": hold });
    const seen = watch({ url: server.url }, { timeoutMs: 500 });
    await until(() => seen.scrapeFailures.length > 0);
    expect(seen.scrapeFailures[0]).toBe("no answer within 500 ms");
  });

  it("that hang delay no probe", async () => {
    const server = await serve({ ...VLLM, "/metrics": hold });
    const seen = watch({ url: server.url });
    await until(() => server.requests.includes("GET /metrics"));
    const before = seen.outcomes.length;
    await until(() => seen.outcomes.length >= before + 5);
    expect(server.requests.filter((each) => each === "GET /metrics")).toHaveLength(1);
  });

  it("that come back are logged", async () => {
    const server = await serve({ ...VLLM, "/metrics": answer(500) });
    const seen = watch({ url: server.url });
    await until(() => seen.scrapeFailures.length > 0);
    server.scripts.set("/metrics", METRICS);
    await until(() => seen.signals.length > 0);
    expect(seen.log.map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  it("that are switched off say how to switch them on", async () => {
    const server = await serve({
      "/health": answer(200, { status: "ok" }),
      "/v1/models": MODELS,
      "/metrics": answer(501),
    });
    const seen = watch({ url: server.url, engine: "llamacpp" });
    await until(() => seen.log.length > 0);
    expect(seen.log[0]?.fields).toMatchObject({ reason: "answered 501", remedy: "start the engine with --metrics" });
  });

  it("that are refused do not suggest switching them on", async () => {
    const server = await serve({
      "/health": answer(200, { status: "ok" }),
      "/v1/models": MODELS,
      "/metrics": answer(401),
    });
    const seen = watch({ url: server.url, engine: "llamacpp" });
    await until(() => seen.log.length > 0);
    expect(seen.log[0]?.fields).toEqual({ endpoint: "gpu-0", reason: "answered 401" });
  });

  it("whose counters run backwards show a restart", async () => {
    const server = await serve(VLLM);
    const seen = watch({ url: server.url });
    await until(() => seen.signals.length >= 2);
    expect(seen.restarts).toBe(0);
    server.scripts.set("/metrics", answer(200, "vllm:prompt_tokens_total 7\n"));
    await until(() => seen.signals.at(-1)?.promptTokensTotal === 7);
    expect(seen.restarts).toBe(1);
  });

  it("are not asked for where the engine has none", async () => {
    const server = await serve({ "/v1/models": MODELS });
    const seen = watch({ url: server.url, engine: "openai" });
    await until(() => seen.models.length > 0 && seen.outcomes.length >= 3);
    expect(new Set(server.requests)).toEqual(new Set(["GET /v1/models"]));
    expect(seen.scrapeFailures).toEqual([]);
  });

  it("of trtllm are never taken from the path that consumes them", async () => {
    const server = await serve({
      "/health": answer(200),
      "/v1/models": MODELS,
      "/prometheus/metrics": answer(200, "trtllm_num_requests_running 2"),
    });
    const seen = watch({ url: server.url, engine: "trtllm" });
    await until(() => seen.signals.length > 0);
    expect(server.requests).not.toContain("GET /metrics");
  });
});

describe("slots", () => {
  const LLAMACPP: Readonly<Record<string, Script>> = {
    "/health": answer(200, { status: "ok" }),
    "/v1/models": MODELS,
    "/props": answer(200, { total_slots: 4 }),
    "/metrics": answer(501),
  };

  it("are told with the metrics, and read no oftener than the models", async () => {
    const server = await serve({ ...LLAMACPP, "/metrics": answer(200, "llamacpp:requests_processing 3") });
    const { signals } = watch({ url: server.url, engine: "llamacpp" });
    await until(() => signals.length >= 3);
    for (const each of signals) expect(each).toMatchObject({ runningRequests: 3, maxRunningRequests: 4 });
    expect(server.requests.filter((each) => each === "GET /props")).toHaveLength(1);
  });

  it("are told where metrics are switched off", async () => {
    const server = await serve(LLAMACPP);
    const { signals } = watch({ url: server.url, engine: "llamacpp" });
    await until(() => signals.length > 0);
    expect(signals[0]).toMatchObject({ runningRequests: undefined, maxRunningRequests: 4 });
  });

  it("are unknown where the engine does not tell them", async () => {
    const server = await serve({ ...LLAMACPP, "/props": answer(404) });
    const seen = watch({ url: server.url, engine: "llamacpp" });
    await until(() => seen.scrapeFailures.length >= 2);
    expect(seen.signals).toEqual([]);
  });
});

describe("models", () => {
  it("are read when the endpoint comes up, and again when it comes back", async () => {
    const server = await serve(VLLM);
    const seen = watch({ url: server.url });
    await until(() => seen.signals.length >= 3);
    expect(seen.models).toEqual([{ engine: "vllm", models: [{ id: "m", ownedBy: "vllm", contextTokens: 2048 }] }]);
    server.scripts.set("/health", answer(500));
    await until(() => seen.outcomes.at(-1)?.kind === "failed");
    server.scripts.set("/health", answer(200));
    await until(() => seen.models.length === 2);
  });

  it("are asked for again until they can be read", async () => {
    const server = await serve({ ...VLLM, "/v1/models": answer(500) });
    const seen = watch({ url: server.url });
    await until(() => seen.signals.length >= 2);
    expect(seen.models).toEqual([]);
    server.scripts.set("/v1/models", MODELS);
    await until(() => seen.models.length === 1);
    expect(seen.outcomes.every(({ kind }) => kind === "ok")).toBe(true);
  });
});
