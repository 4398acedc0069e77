import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answer, hold, type Script } from "../../test/support/scripted-server.ts";
import { until } from "../../test/support/until.ts";
import { firstOutcome, METRICS, MODELS, serve, VLLM, watch } from "../../test/support/watched-poller.ts";
import { type ProbeOutcome, seededRandom } from "../core/index.ts";
import { createPoller } from "./poller.ts";

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
    expect(await firstOutcome(scripts, { apiKey })).toEqual({ kind: "auth_failed", reason });
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
      endpoint: { id: "gpu-0", url: server.url, engine: "vllm", apiKey: undefined, tls: undefined },
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
