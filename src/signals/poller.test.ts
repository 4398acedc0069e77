import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  answer,
  hold,
  type Script,
  type ScriptedServer,
  startScriptedServer,
} from "../../test/support/scripted-server.ts";
import { until } from "../../test/support/until.ts";
import type { EngineSignals, ProbeOutcome } from "../core/index.ts";
import { seededRandom } from "../core/index.ts";
import type { ServedModel } from "./models.ts";
import { createPoller, type PolledEndpoint, type Poller, type PollingOptions } from "./poller.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

const MODELS = answer(200, { data: [{ id: "m", owned_by: "vllm", max_model_len: 2048 }] });
const METRICS = answer(200, "vllm:num_requests_running 3\nvllm:prompt_tokens_total 100\n");
const VLLM = { "/health": answer(200), "/v1/models": MODELS, "/metrics": METRICS };

interface Watched {
  readonly poller: Poller;
  readonly outcomes: ProbeOutcome[];
  readonly signals: EngineSignals[];
  readonly scrapeFailures: string[];
  readonly models: { readonly models: readonly ServedModel[]; readonly engine: string }[];
  readonly log: { readonly level: string; readonly fields: object; readonly message: string }[];
  restarts: number;
}

function watch(
  endpoint: Partial<PolledEndpoint> & { url: string },
  health: Partial<PollingOptions> = {},
  nowMs = () => performance.now(),
): Watched {
  const seen: Omit<Watched, "poller"> = {
    outcomes: [],
    signals: [],
    scrapeFailures: [],
    models: [],
    log: [],
    restarts: 0,
  };
  const poller = createPoller({
    endpoint: { id: "gpu-0", engine: "vllm", apiKey: undefined, ...endpoint },
    health: { intervalMs: 10, timeoutMs: 5_000, path: undefined, ...health },
    nowMs,
    random: seededRandom(1),
    onProbe: (outcome) => seen.outcomes.push(outcome),
    onSignals: (signals) => seen.signals.push(signals),
    onScrapeFailed: (reason) => seen.scrapeFailures.push(reason),
    onRestart: () => {
      seen.restarts += 1;
    },
    onModels: (models, engine) => seen.models.push({ models, engine }),
    log: {
      info: (fields, message) => seen.log.push({ level: "info", fields, message }),
      warn: (fields, message) => seen.log.push({ level: "warn", fields, message }),
    },
  });
  cleanups.unshift(() => poller.stop());
  poller.start();
  return Object.assign(seen, { poller });
}

async function serve(scripts: Readonly<Record<string, Script>>): Promise<ScriptedServer> {
  const server = await startScriptedServer(scripts);
  cleanups.push(server.close);
  return server;
}

async function firstOutcome(scripts: Readonly<Record<string, Script>>, endpoint: Partial<PolledEndpoint> = {}) {
  const server = await serve(scripts);
  const seen = watch({ ...endpoint, url: server.url }, { timeoutMs: 300 });
  await until(() => seen.outcomes.length > 0);
  return { server, ...seen, outcome: seen.outcomes[0] };
}

describe("health probes", () => {
  const slow: Script = (_request, response) => {
    setTimeout(() => response.end(), 2_000).unref();
  };
  it.each<[string, Script, object]>([
    ["200 without a body", answer(200), { kind: "ok" }],
    ["200 with JSON", answer(200, { status: "ok" }), { kind: "ok" }],
    ["200 with a web page", answer(200, "<html>"), { kind: "failed", reason: "answered 200 with a web page" }],
    ["503 while loading", answer(503, { error: { message: "Loading model" } }), { kind: "loading" }],
    ["503", answer(503), { kind: "failed", reason: "answered 503" }],
    ["404", answer(404), { kind: "failed", reason: "answered 404" }],
    ["301", answer(301, "", { location: "/elsewhere" }), { kind: "failed", reason: "answered 301" }],
    ["a slow answer", slow, { kind: "timed_out" }],
    ["no answer", hold, { kind: "timed_out" }],
    ["10 MB", answer(200, "x".repeat(10_000_000)), { kind: "failed", reason: "UND_ERR_RES_EXCEEDED_MAX_SIZE" }],
    ["401", answer(401), { kind: "auth_failed", reason: "answered 401, no API key is configured" }],
    ["a reset", (request) => request.socket.resetAndDestroy(), { kind: "failed" }],
  ])("read %s", async (_name, script, expected) => {
    const { outcome } = await firstOutcome({ "/health": script });
    expect(outcome).toMatchObject(expected);
  });

  it("read a refused connection as failed", async () => {
    const server = await startScriptedServer({});
    await server.close();
    const seen = watch({ url: server.url });
    await until(() => seen.outcomes.length >= 2);
    expect(seen.outcomes[1]).toEqual({ kind: "failed", reason: "ECONNREFUSED" });
  });

  it("say when a timed-out probe began", async () => {
    const beforeMs = performance.now();
    const { outcome } = await firstOutcome({ "/health": hold });
    const startedAtMs = outcome?.kind === "timed_out" ? outcome.startedAtMs : Number.NaN;
    expect(startedAtMs).toBeGreaterThanOrEqual(beforeMs);
    expect(startedAtMs).toBeLessThan(performance.now());
  });

  it("go to the configured path, read by its status alone", async () => {
    const server = await serve({ "/ready": answer(200, "yes") });
    const seen = watch({ url: server.url, engine: "llamacpp" }, { path: "/ready" });
    await until(() => seen.outcomes.length > 0);
    expect(seen.outcomes[0]).toEqual({ kind: "ok" });
  });

  it("go on at the interval, one at a time", async () => {
    let inFlight = 0;
    let most = 0;
    const server = await serve({
      "/health": (_request, response) => {
        inFlight += 1;
        most = Math.max(most, inFlight);
        setTimeout(() => {
          inFlight -= 1;
          response.end();
        }, 20);
      },
    });
    const seen = watch({ url: server.url }, { intervalMs: 1 });
    await until(() => {
      seen.poller.probeSoon();
      return seen.outcomes.length >= 5;
    });
    expect(most).toBe(1);
  });
});

describe("the pace of probes", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A poller on the fake clock, and the number of probes that ended by then. */
  async function paced(script: Script, intervalMs: number) {
    const server = await serve({ "/health": script, "/v1/models": MODELS, "/metrics": METRICS });
    const seen = watch({ url: server.url }, { intervalMs }, () => Date.now());
    return {
      poller: seen.poller,
      async probesAfter(elapsedMs: number, expected: number): Promise<void> {
        vi.advanceTimersByTime(elapsedMs);
        // Sockets run in real time; a probe too many would have begun by the time they are quiet.
        for (let turn = 0; turn < 50 || seen.outcomes.length < expected; turn++) {
          await new Promise((resolve) => setImmediate(resolve));
        }
        expect(seen.outcomes.length).toBe(expected);
      },
    };
  }

  it("starts at once and quickly, and slows down to the interval", async () => {
    const { probesAfter } = await paced(answer(500), 1_000);
    await probesAfter(1, 1);
    await probesAfter(200, 1);
    await probesAfter(75, 2);
    await probesAfter(400, 2);
    await probesAfter(150, 3);
    await probesAfter(850, 3);
    await probesAfter(250, 4);
    await probesAfter(850, 4);
    await probesAfter(250, 5);
  });

  it("is quick again when an endpoint comes up", async () => {
    let status = 500;
    const { probesAfter } = await paced((_request, response) => response.writeHead(status).end(), 100_000);
    await probesAfter(1, 1);
    for (let probes = 2; probes <= 6; probes++) await probesAfter(1.1 * 250 * 2 ** (probes - 2), probes);
    status = 200;
    await probesAfter(1.1 * 250 * 2 ** 5, 7);
    await probesAfter(275, 8);
  });

  it("is brought forward on demand", async () => {
    const { poller, probesAfter } = await paced(answer(200), 100_000);
    await probesAfter(1, 1);
    await probesAfter(275, 2);
    await probesAfter(300, 2);
    poller.probeSoon();
    await probesAfter(1, 3);
  });
});

describe("credentials", () => {
  const KEY = "k3y!";
  const guarded = (script: Script): Script => {
    return (request, response) =>
      (request.headers.authorization === `Bearer ${KEY}` ? script : answer(401, "no"))(request, response);
  };
  const scripts = { "/health": guarded(answer(200)), "/v1/models": guarded(MODELS), "/metrics": guarded(METRICS) };

  it("go with every probe and scrape", async () => {
    const server = await serve(scripts);
    const seen = watch({ url: server.url, apiKey: KEY });
    await until(() => seen.signals.length > 0);
    expect(seen.outcomes[0]).toEqual({ kind: "ok" });
    expect(seen.models[0]?.models.map(({ id }) => id)).toEqual(["m"]);
  });

  it.each<[string, string | undefined, string]>([
    ["missing", undefined, "answered 401, no API key is configured"],
    ["wrong", "wr0ng", "answered 401, the configured API key is refused"],
  ])("that are %s make an auth_failed that tells no key", async (_name, apiKey, reason) => {
    const seen = await firstOutcome(scripts, { apiKey });
    expect(seen.outcome).toEqual({ kind: "auth_failed", reason });
  });

  it("refused for the metrics alone leave health untouched, and no key in the log", async () => {
    const server = await serve({ ...VLLM, "/metrics": guarded(METRICS) });
    const seen = watch({ url: server.url, apiKey: "wr0ng" });
    await until(() => seen.scrapeFailures.length >= 2);
    expect(new Set(seen.outcomes.map(({ kind }) => kind))).toEqual(new Set(["ok"]));
    expect(seen.log).toMatchObject([{ level: "warn", fields: { endpoint: "gpu-0", reason: "answered 401" } }]);
    expect(JSON.stringify(seen.log)).not.toContain("wr0ng");
  });
});

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

  it.each<[string, Script, string | RegExp]>([
    ["that fail", answer(500), "answered 500"],
    ["that are garbage", answer(200, "\u0000{}{}\n<<<"), "no metric of a known name"],
    ["of another engine", answer(200, "sglang:num_running_reqs 1"), "no metric of a known name"],
    ["of 10 MB", answer(200, "x".repeat(10_000_000)), /EXCEEDED_MAX_SIZE/],
    ["that never come", hold, /no answer within/],
  ])("%s are counted each time, logged once, and do not harm health", async (_name, script, reason) => {
    const server = await serve({ ...VLLM, "/metrics": script });
    const seen = watch({ url: server.url }, { timeoutMs: 100 });
    await until(() => seen.scrapeFailures.length >= 3);
    expect(seen.scrapeFailures[0]).toMatch(reason);
    expect(seen.log).toHaveLength(1);
    expect(seen.outcomes.every(({ kind }) => kind === "ok")).toBe(true);
    expect(seen.signals).toEqual([]);
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
    expect(seen.log[0]?.fields).toMatchObject({ reason: "answered 501", remedy: "start it with --metrics" });
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

describe("an engine to be found out", () => {
  it("is probed and scraped as what it is", async () => {
    const server = await serve(VLLM);
    const seen = watch({ url: server.url, engine: "auto" });
    await until(() => seen.signals.length > 0);
    expect(seen.outcomes[0]).toEqual({ kind: "ok" });
    expect(seen.models[0]?.engine).toBe("vllm");
  });

  it("is loading while every path says so, and found out afterwards", async () => {
    const loading = answer(503, { error: { message: "Loading model", type: "unavailable_error", code: 503 } });
    const server = await serve({ "/health": loading, "/v1/models": loading });
    const seen = watch({ url: server.url, engine: "auto" });
    await until(() => seen.outcomes.length > 0);
    expect(seen.outcomes[0]?.kind).toBe("loading");
    server.scripts.set("/health", answer(200, { status: "ok" }));
    server.scripts.set("/v1/models", answer(200, { data: [{ id: "m", owned_by: "llamacpp" }] }));
    await until(() => seen.models[0]?.engine === "llamacpp");
  });

  it("may be another one after a failure", async () => {
    const server = await serve(VLLM);
    const seen = watch({ url: server.url, engine: "auto" });
    await until(() => seen.models.length > 0);
    server.scripts.set("/health", answer(500));
    await until(() => seen.outcomes.at(-1)?.kind === "failed");
    server.scripts.set("/v1/models", answer(200, { data: [{ id: "m", owned_by: "library" }] }));
    server.scripts.set("/api/version", answer(200, { version: "0.12.0" }));
    await until(() => seen.models.at(-1)?.engine === "ollama");
  });

  it.each<[string, Script, object]>([
    ["answers nothing known", answer(404), { kind: "failed", reason: "answered 404" }],
    ["is a web application", answer(200, "<html>"), { kind: "failed" }],
    [
      "lists no models",
      answer(200, { data: "none" }),
      { kind: "failed", reason: expect.stringContaining("set its kind") },
    ],
    ["refuses us everywhere", answer(401), { kind: "auth_failed" }],
    ["hangs", hold, { kind: "timed_out" }],
  ])("that %s is not ready", async (_name, script, expected) => {
    const { outcome } = await firstOutcome({ "/v1/models": script }, { engine: "auto" });
    expect(outcome).toMatchObject(expected);
  });

  it("that cannot be told is probed on the configured path all the same", async () => {
    const server = await serve({ "/ready": answer(200) });
    const seen = watch({ url: server.url, engine: "auto" }, { path: "/ready" });
    await until(() => seen.outcomes.length > 0);
    expect(seen.outcomes[0]).toEqual({ kind: "ok" });
  });
});

describe("stopping", () => {
  it.each<[string, Readonly<Record<string, Script>>, string]>([
    ["a probe", { "/health": hold }, "GET /health"],
    ["a scrape", { ...VLLM, "/metrics": hold }, "GET /metrics"],
    ["reading the models", { ...VLLM, "/v1/models": hold }, "GET /v1/models"],
  ])("ends %s under way, closes its sockets and calls nobody back", async (_name, scripts, request) => {
    const server = await serve(scripts);
    const seen = watch({ url: server.url });
    await until(() => server.requests.includes(request));
    const counts = () =>
      [seen.outcomes, seen.signals, seen.models, seen.scrapeFailures, seen.log].map((each) => each.length);
    const before = counts();
    await seen.poller.stop();
    await until(() => server.openSockets() === 0);
    seen.poller.probeSoon();
    const requests = server.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(counts()).toEqual(before);
    expect(server.requests.length).toBe(requests);
  });

  it("may be asked for twice, at once, and before the start", async () => {
    const server = await serve(VLLM);
    const seen = watch({ url: server.url });
    await Promise.all([seen.poller.stop(), seen.poller.stop()]);
    seen.poller.start();
    await seen.poller.stop();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(server.requests).toEqual([]);
  });

  it("from within a callback ends the polling", async () => {
    const server = await serve(VLLM);
    const outcomes: ProbeOutcome[] = [];
    const poller = createPoller({
      endpoint: { id: "gpu-0", url: server.url, engine: "vllm", apiKey: undefined },
      health: { intervalMs: 5, timeoutMs: 1_000, path: undefined },
      nowMs: () => performance.now(),
      random: seededRandom(1),
      onProbe: (outcome) => {
        outcomes.push(outcome);
        void poller.stop();
      },
      onSignals: () => {},
      onScrapeFailed: () => {},
      onRestart: () => {},
      onModels: () => {},
      log: { info: () => {}, warn: () => {} },
    });
    poller.start();
    await until(() => outcomes.length > 0);
    await poller.stop();
    await until(() => server.openSockets() === 0);
    expect(outcomes).toHaveLength(1);
  });
});

it("sends nothing but GETs", async () => {
  const server = await serve(VLLM);
  for (const engine of [
    "auto",
    "vllm",
    "sglang",
    "llamacpp",
    "ollama",
    "trtllm",
    "lmdeploy",
    "tgi",
    "openai",
  ] as const) {
    const seen = watch({ url: server.url, engine });
    await until(() => seen.outcomes.length >= 2);
  }
  expect(server.requests.filter((request) => !request.startsWith("GET "))).toEqual([]);
});
