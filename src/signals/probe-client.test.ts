import { afterEach, describe, expect, it } from "vitest";
import { answer, hold, type Script, startScriptedServer } from "../../test/support/scripted-server.ts";
import { until } from "../../test/support/until.ts";
import { createProbeClient } from "./probe-client.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function get(script: Script, options: { apiKey?: string; timeoutMs?: number; base?: string } = {}) {
  const server = await startScriptedServer({ "/health": script, "/engine/health": script });
  const client = createProbeClient({
    url: server.url + (options.base ?? ""),
    apiKey: options.apiKey,
    timeoutMs: options.timeoutMs ?? 5_000,
    tls: undefined,
  });
  cleanups.push(async () => client.destroy(), server.close);
  return { server, client, result: await client.get("/health") };
}

describe("createProbeClient", () => {
  it("reads status and body", async () => {
    expect((await get(answer(503, "busy"))).result).toEqual({ kind: "answered", status: 503, body: "busy" });
  });

  it("carries the key as bearer token, or none", async () => {
    const echo: Script = (request, response) => {
      response.end(request.headers.authorization ?? "none");
    };
    expect((await get(echo, { apiKey: "k" })).result).toMatchObject({ body: "Bearer k" });
    expect((await get(echo)).result).toMatchObject({ body: "none" });
  });

  it.each(["/engine", "/engine/"])("appends paths to that of the base URL (%s)", async (base) => {
    const { server } = await get(answer(200), { base });
    expect(server.requests).toEqual(["GET /engine/health"]);
  });

  it("does not follow a redirect", async () => {
    const { server, result } = await get(answer(301, "", { location: "/engine/health" }));
    expect(result).toMatchObject({ kind: "answered", status: 301 });
    expect(server.requests).toEqual(["GET /health"]);
  });

  it.each<[string, Script]>([
    ["with its length announced", answer(200, "x".repeat(10_000_000))],
    ["without", (_request, response) => response.write("x".repeat(10_000_000), () => response.end())],
  ])("gives up an answer of 10 MB %s", async (_name, script) => {
    expect((await get(script)).result).toEqual({ kind: "failed", reason: "answer over 4194304 bytes" });
  });

  const trickle: Script = (request, response) => {
    const timer = setInterval(() => response.write("."), 10);
    request.on("close", () => clearInterval(timer));
  };
  it.each<[string, Script]>([
    ["no answer", hold],
    ["an answer without end", trickle],
  ])("times out on %s", async (_name, script) => {
    const { result } = await get(script, { timeoutMs: 80 });
    expect(result).toEqual({ kind: "timed_out", reason: "no answer within 80 ms" });
  });

  it.each<[string, Script, RegExp]>([
    ["a reset", (request) => request.socket.resetAndDestroy(), /^ECONNRESET$|^closed before/],
    ["an end in the middle", cutShort, /^ECONNRESET$|^closed before/],
    ["something other than HTTP", (request) => request.socket.end("SSH-2.0\r\n\r\n"), /^HPE_INVALID_CONSTANT$/],
  ])("fails on %s", async (_name, script, code) => {
    const { result } = await get(script);
    expect(result).toEqual({ kind: "failed", reason: expect.stringMatching(code) });
  });

  it("fails where nobody listens", async () => {
    const server = await startScriptedServer({});
    await server.close();
    const client = createProbeClient({ url: server.url, apiKey: undefined, timeoutMs: 5_000, tls: undefined });
    expect(await client.get("/health")).toEqual({ kind: "failed", reason: "ECONNREFUSED" });
  });

  it("never tells the key, not even one that cannot be sent", async () => {
    const { result } = await get(answer(200), { apiKey: "se\ncret" });
    expect(result.kind).toBe("failed");
    expect(JSON.stringify(result)).not.toContain("cret");
  });

  it("keeps no connection for the next probe", async () => {
    const { server } = await get(answer(200));
    await until(() => server.openSockets() === 0);
  });

  it("sends nothing once it is destroyed", async () => {
    const { server, client } = await get(answer(200));
    client.destroy();
    expect(await client.get("/health")).toEqual({ kind: "failed", reason: "stopped" });
    expect(server.requests).toHaveLength(1);
  });

  it("leaves no socket when it is destroyed", async () => {
    const server = await startScriptedServer({ "/health": hold });
    cleanups.push(server.close);
    const client = createProbeClient({ url: server.url, apiKey: undefined, timeoutMs: 5_000, tls: undefined });
    const answers = [client.get("/health"), client.get("/health")];
    await until(() => server.requests.length === 2);
    answers.push(client.get("/health"));
    client.destroy();
    expect(await Promise.all(answers)).toEqual(Array(3).fill({ kind: "failed", reason: "stopped" }));
    await until(() => server.openSockets() === 0);
  });
});

function cutShort(request: Parameters<Script>[0], response: Parameters<Script>[1]): void {
  response.writeHead(200, { "content-length": "100" }).write("half", () => request.socket.end());
}
