import { createConnection } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EngineOptions } from "./options.ts";
import { createEngineServer, type EngineServer } from "./server.ts";

/** Fast enough that no test waits; nothing below asserts a time. */
const FAST: EngineOptions = { listen: "127.0.0.1:0", model: "m", speed: 50 };

const MESSAGES = [{ role: "user", content: "What keeps a ship on an even keel?" }];

let server: EngineServer;
let url: string;

async function start(options: EngineOptions = {}): Promise<void> {
  server = createEngineServer({ ...FAST, ...options });
  ({ url } = await server.listen());
}

async function post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return await fetch(url + path, { ...init, method: "POST", body: JSON.stringify(body) });
}

async function answer(path: string, body: unknown): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await post(path, body);
  return { status: response.status, body: await response.json() };
}

async function metric(name: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text.split("\n").find((line) => line.startsWith(`${name}{`));
}

beforeEach(() => start());

afterEach(() => server.close());

describe("routes that only read", () => {
  it("embeds", async () => {
    const { body } = await answer("/v1/embeddings", { input: ["abcd", "abcdefgh"], dimensions: 3 });
    expect(body).toMatchObject({
      object: "list",
      data: [
        { index: 0, object: "embedding", embedding: [expect.any(Number), expect.any(Number), expect.any(Number)] },
        { index: 1 },
      ],
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
    const encoded = await answer("/v1/embeddings", { input: "abcd", dimensions: 3, encoding_format: "base64" });
    const { embedding } = (encoded.body as { data: [{ embedding: string }] }).data[0];
    const floats = new Float32Array(Uint8Array.from(Buffer.from(embedding, "base64")).buffer);
    expect([...floats]).toEqual((body as { data: [{ embedding: number[] }] }).data[0].embedding);
    expect(Math.hypot(...floats)).toBeCloseTo(1, 5);
  });

  it.each(["/v1/rerank", "/rerank"])("ranks at %s", async (path) => {
    const documents = ["mast", "keel", "rudder"];
    const { body } = await answer(path, { query: "balance", documents, top_n: 2 });
    const { results } = body as { results: { index: number; document: { text: string }; relevance_score: number }[] };
    expect(results).toHaveLength(2);
    for (const { index, document } of results) expect(document.text).toBe(documents[index]);
    expect(results[0]?.relevance_score).toBeGreaterThanOrEqual(results[1]?.relevance_score ?? 1);
    // "balance" is 2 tokens, the separator 2, and the documents 1, 1 and 2.
    expect(body).toMatchObject({ usage: { total_tokens: 16 } });
  });

  it.each(["/v1/score", "/score"])("scores at %s", async (path) => {
    const { body } = await answer(path, { text_1: "balance", text_2: ["mast", "keel"] });
    expect(body).toMatchObject({ data: [{ index: 0, object: "score" }, { index: 1 }], usage: { total_tokens: 10 } });
    expect(await answer(path, { text_1: ["a", "b"], text_2: "c" })).toMatchObject({ status: 400 });
  });

  it("tokenizes text and messages", async () => {
    const text = (await answer("/tokenize", { prompt: "abcdefgh" })).body;
    expect(text).toEqual({ count: 2, max_model_len: 131_072, tokens: [0x64636261, 0x68676665] });
    expect((await answer("/tokenize", { messages: MESSAGES })).body).toMatchObject({ count: 15 });
    expect(await answer("/tokenize", {})).toMatchObject({ status: 400 });
  });

  it("takes its time in the engine like any other request", async () => {
    await answer("/v1/embeddings", { input: "abcd" });
    expect(server.signals()).toMatchObject({ promptTokensTotal: 1, generatedTokensTotal: 0 });
  });
});

describe("refusals", () => {
  const tooLong = "x".repeat(4 * 200);

  it.each([
    ["an unknown model", "/v1/chat/completions", { model: "other", messages: MESSAGES }, 404, "NotFoundError"],
    ["no messages", "/v1/chat/completions", { messages: [] }, 400, "BadRequestError"],
    ["a bad field", "/v1/completions", { prompt: "a", max_tokens: 0 }, 400, "BadRequestError"],
    ["a body that is no object", "/v1/completions", [], 400, "BadRequestError"],
    ["stream_options alone", "/v1/completions", { prompt: "a", stream_options: {} }, 400, "BadRequestError"],
    ["an empty prompt", "/v1/completions", { prompt: "" }, 400, "BadRequestError"],
    ["a long prompt", "/v1/completions", { prompt: tooLong }, 400, "BadRequestError"],
    ["a long input", "/v1/embeddings", { input: tooLong }, 400, "BadRequestError"],
    ["a bound too far", "/v1/completions", { prompt: "a", max_tokens: 100 }, 400, "BadRequestError"],
  ])("answers %s in vLLM's shape", async (_what, path, body, status, type) => {
    await server.close();
    await start({ maxModelLen: 100 });
    expect(await answer(path, body)).toEqual({
      status,
      body: { error: { message: expect.any(String), type, param: null, code: status } },
    });
  });

  it("names both lengths when the context is too long", async () => {
    await server.close();
    await start({ kvTokens: 100 });
    const { body } = await answer("/v1/completions", { prompt: tooLong, max_tokens: 5 });
    expect(JSON.stringify(body)).toMatch(/maximum context length is 96 tokens.* 200 /);
  });

  it("answers broken JSON with 400", async () => {
    const response = await fetch(`${url}/v1/completions`, { method: "POST", body: "{" });
    expect(response.status).toBe(400);
  });

  it("answers unknown paths and wrong methods as FastAPI does", async () => {
    const unknown = await post("/v1/nothing", {});
    expect([unknown.status, await unknown.json()]).toEqual([404, { detail: "Not Found" }]);
    const wrong = await fetch(`${url}/v1/completions`);
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
    expect((await post("/health", {})).status).toBe(405);
    expect((await post("/faults", { faults: [] })).status).toBe(404);
  });

  it("asks for the key under /v1/ only", async () => {
    await server.close();
    await start({ apiKey: "secret" });
    const models = (headers: Record<string, string>): Promise<Response> => fetch(`${url}/v1/models`, { headers });
    const refused = await models({});
    expect([refused.status, await refused.json()]).toEqual([401, { error: "Unauthorized" }]);
    expect((await models({ authorization: "Bearer wrong" })).status).toBe(401);
    expect((await models({ authorization: "Bearer secret" })).status).toBe(200);
    expect((await models({ "x-api-key": "secret" })).status).toBe(200);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });
});

describe("pages", () => {
  it("lists the model with its context window", async () => {
    expect(await (await fetch(`${url}/v1/models`)).json()).toMatchObject({
      object: "list",
      data: [{ id: "m", object: "model", owned_by: "evenkeel", max_model_len: 131_072 }],
    });
  });

  it("is healthy and says its version", async () => {
    const health = await fetch(`${url}/health?verbose=1`);
    expect([health.status, await health.text()]).toEqual([200, ""]);
    expect(await (await fetch(`${url}/version`)).json()).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  });

  it("reports under vLLM's metric names", async () => {
    await server.close();
    await start({ model: 'a"b\\c', kvTokens: 1600 });
    await answer("/v1/completions", { prompt: "abcd".repeat(20), max_tokens: 5 });
    await answer("/v1/completions", { prompt: "abcd".repeat(20), max_tokens: 5 });
    const labels = 'model_name="a\\"b\\\\c",engine="0"';
    for (const [name, value] of Object.entries({
      "vllm:num_requests_running": 0,
      "vllm:num_requests_waiting": 0,
      "vllm:kv_cache_usage_perc": 0,
      "vllm:prompt_tokens_total": 40,
      "vllm:generation_tokens_total": 10,
      "vllm:prefix_cache_queries_total": 40,
      "vllm:prefix_cache_hits_total": 16,
      "vllm:num_preemptions_total": 0,
    })) {
      expect(await metric(name)).toBe(`${name}{${labels}} ${value}`);
    }
    // The null block of vLLM comes on top of the 100 that are there to use.
    expect(await metric("vllm:cache_config_info")).toMatch(/block_size="16",num_gpu_blocks="101".*} 1$/);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toContain(`vllm:request_success_total{${labels},finished_reason="length"} 2\n`);
    for (const line of text.trimEnd().split("\n")) expect(line).toMatch(/^(# (HELP|TYPE) )?vllm:/);
  });
});

describe("connections", () => {
  const endless = { model: "m", messages: MESSAGES, max_tokens: 100_000, ignore_eos: true };

  it.each([true, false])("stops generating when the client leaves (stream: %s)", async (stream) => {
    const client = new AbortController();
    const pending = post("/v1/chat/completions", { ...endless, stream }, { signal: client.signal });
    pending.catch(() => undefined);
    await vi.waitFor(() => expect(server.signals().generatedTokensTotal).toBeGreaterThan(3));
    client.abort();
    await vi.waitFor(() => expect(server.signals()).toMatchObject({ runningRequests: 0, kvUsedRatio: 0 }));
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toMatch(/finished_reason="abort"} 1$/m);
  });

  it("sends each event in an HTTP chunk of its own", async () => {
    const raw = await new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(url);
      const body = JSON.stringify({ messages: MESSAGES, max_tokens: 5, stream: true });
      const socket = createConnection({ host: hostname, port: Number(port) });
      let text = "";
      socket.setEncoding("utf8");
      socket.on("data", (data: string) => {
        text += data;
      });
      socket.on("error", reject);
      socket.on("close", () => resolve(text));
      socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: e\r\nconnection: close\r\n`);
      socket.write(`content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    });
    const chunks = (raw.split("\r\n\r\n", 2)[1] as string).split(/\r\n[0-9a-f]+\r\n|^[0-9a-f]+\r\n/).slice(1);
    expect(chunks.filter((chunk) => chunk.startsWith("data: "))).toHaveLength(1 + 5 + 1 + 1);
    for (const chunk of chunks) expect(chunk.split("data: ").length).toBeLessThanOrEqual(2);
  });

  it("holds requests beyond its sequence limit in a queue", async () => {
    await server.close();
    await start({ maxSequences: 1 });
    const client = new AbortController();
    const first = post("/v1/chat/completions", endless, { signal: client.signal });
    const second = answer("/v1/completions", { prompt: "a", max_tokens: 1 });
    first.catch(() => undefined);
    await vi.waitFor(() => expect(server.signals()).toMatchObject({ runningRequests: 1, waitingRequests: 1 }));
    client.abort();
    expect(await second).toMatchObject({ status: 200 });
  });

  it("cuts open streams when it closes, as often as it is asked", async () => {
    const response = await post("/v1/chat/completions", { ...endless, stream: true });
    const reading = response.text();
    reading.catch(() => undefined);
    await Promise.all([server.close(), server.close()]);
    await server.close();
    await expect(reading).rejects.toThrow();
    await expect(fetch(url)).rejects.toThrow();
  });

  it("says when its address is taken", async () => {
    const twin = createEngineServer({ ...FAST, listen: url.slice("http://".length) });
    await expect(twin.listen()).rejects.toThrow("EADDRINUSE");
    await twin.close();
  });
});
