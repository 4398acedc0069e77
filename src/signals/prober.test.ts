import { describe, expect, it } from "vitest";
import { answer, hold, type Script, startScriptedServer } from "../../test/support/scripted-server.ts";
import { until } from "../../test/support/until.ts";
import { firstOutcome, serve, VLLM, watch } from "../../test/support/watched-poller.ts";

describe("health probes", () => {
  it.each<[string, Script, object]>([
    ["200 without a body", answer(200), { kind: "ok" }],
    ["200 with JSON", answer(200, { status: "ok" }), { kind: "ok" }],
    ["200 with a web page", answer(200, "<html>"), { kind: "failed", reason: "answered 200 with a web page" }],
    ["503 while loading", answer(503, { error: { message: "Loading model" } }), { kind: "loading" }],
    ["503", answer(503), { kind: "failed", reason: "answered 503" }],
    ["404", answer(404), { kind: "failed", reason: "answered 404" }],
    ["301", answer(301, "", { location: "/elsewhere" }), { kind: "failed", reason: "answered 301" }],
    ["10 MB", answer(200, "x".repeat(10_000_000)), { kind: "failed", reason: "answer over 4194304 bytes" }],
    ["401", answer(401), { kind: "auth_failed", reason: "answered 401, no API key is configured" }],
    ["a reset", (request) => request.socket.resetAndDestroy(), { kind: "failed" }],
  ])("read %s", async (_name, script, expected) => {
    expect(await firstOutcome({ "/health": script })).toMatchObject(expected);
  });

  const slow: Script = (_request, response) => {
    setTimeout(() => response.end(), 500).unref();
  };
  it.each<[string, Script]>([
    ["a slow answer", slow],
    ["no answer", hold],
  ])("read %s as timed out, and say when the probe began", async (_name, script) => {
    const beforeMs = performance.now();
    const outcome = await firstOutcome({ "/health": script }, {}, { timeoutMs: 50 });
    expect(outcome).toMatchObject({ kind: "timed_out", reason: "no answer within 50 ms" });
    const startedAtMs = outcome?.kind === "timed_out" ? outcome.startedAtMs : Number.NaN;
    expect(startedAtMs).toBeGreaterThanOrEqual(beforeMs);
    expect(startedAtMs).toBeLessThan(performance.now());
  });

  it("read a refused connection as failed", async () => {
    const server = await startScriptedServer({});
    await server.close();
    const seen = watch({ url: server.url });
    await until(() => seen.outcomes.length >= 2);
    expect(seen.outcomes[1]).toEqual({ kind: "failed", reason: "ECONNREFUSED" });
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
  ])("that %s is not ready", async (_name, script, expected) => {
    expect(await firstOutcome({ "/v1/models": script }, { engine: "auto" })).toMatchObject(expected);
  });

  it("that hangs is timed out", async () => {
    const outcome = await firstOutcome({ "/v1/models": hold }, { engine: "auto" }, { timeoutMs: 50 });
    expect(outcome?.kind).toBe("timed_out");
  });

  it("that cannot be told is probed on the configured path all the same", async () => {
    const server = await serve({ "/ready": answer(200) });
    const seen = watch({ url: server.url, engine: "auto" }, { path: "/ready" });
    await until(() => seen.outcomes.length > 0);
    expect(seen.outcomes[0]).toEqual({ kind: "ok" });
  });
});
