import { afterEach, describe, expect, it, vi } from "vitest";
import type { EngineOptions } from "./options.ts";
import { createEngineServer, type EngineServer } from "./server.ts";

const CHAT = { messages: [{ role: "user", content: "Hello" }], max_tokens: 5 };
const STREAM = { ...CHAT, stream: true };

let server: EngineServer;
let url: string;

async function start(faults: readonly string[], options: EngineOptions = {}): Promise<void> {
  server = createEngineServer({ listen: "127.0.0.1:0", speed: 50, faults, ...options });
  ({ url } = await server.listen());
}

async function chat(body: object, signal: AbortSignal | null = null): Promise<Response> {
  return await fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), signal });
}

/** What came through before the stream ended, and whether it ended well. */
async function read(response: Response): Promise<{ readonly events: string[]; readonly isComplete: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  let isComplete = true;
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += decoder.decode(chunk);
  } catch {
    isComplete = false;
  }
  return { events: text.split("\n\n").slice(0, -1), isComplete };
}

/** Nothing tells a hold from a slow answer but time: the engine has long finished everything else by then. */
async function outlives(pending: Promise<unknown>): Promise<boolean> {
  let isOpen = true;
  const settled = (): void => {
    isOpen = false;
  };
  pending.then(settled, settled);
  const other = await fetch(`${url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ prompt: "a", max_tokens: 20 }),
  });
  await other.text();
  return isOpen;
}

afterEach(() => server.close());

describe("scripted faults", () => {
  it("answers the next requests with a status and serves the others", async () => {
    await start(["status=503,count=2,retry-after=7"]);
    const responses = [await chat(CHAT), await chat(STREAM), await chat(CHAT)];
    expect(responses.map(({ status }) => status)).toEqual([503, 503, 200]);
    expect(responses[0]?.headers.get("retry-after")).toBe("7");
    expect(await responses[0]?.json()).toMatchObject({ error: { type: "Service Unavailable", code: 503 } });
  });

  it("strikes every inference route, and none of the others", async () => {
    await start(["status=500"]);
    for (const [path, body] of [
      ["/v1/messages", CHAT],
      ["/v1/embeddings", { input: "a" }],
    ] as const) {
      expect((await fetch(url + path, { method: "POST", body: JSON.stringify(body) })).status).toBe(500);
    }
    for (const path of ["/health", "/metrics", "/v1/models"]) expect((await fetch(url + path)).status).toBe(200);
  });

  it("holds a request without an answer", async () => {
    await start(["hold,count=1"]);
    const client = new AbortController();
    const pending = chat(STREAM, client.signal);
    pending.catch(() => undefined);
    await vi.waitFor(async () => expect((await chat(CHAT)).status).toBe(200));
    expect(await outlives(pending)).toBe(true);
    client.abort();
  });

  it("stalls after the head", async () => {
    await start(["stall,count=1"]);
    const response = await chat(STREAM);
    expect(response.status).toBe(200);
    expect(await outlives(read(response))).toBe(true);
  });

  it("stalls between head and body of an answer in one piece", async () => {
    await start(["stall,count=1"]);
    const response = await chat(CHAT);
    expect(response.status).toBe(200);
    expect(await outlives(response.text())).toBe(true);
  });

  it("stalls in the middle of a stream", async () => {
    await start(["stall,after=3,count=1"]);
    const response = await chat(STREAM);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let events = 0;
    while (events < 3) {
      const { value } = await reader.read();
      events +=
        Buffer.from(value ?? [])
          .toString()
          .split("\n\n").length - 1;
    }
    expect(await outlives(reader.read())).toBe(true);
    expect(events).toBe(3);
    await reader.cancel();
  });

  it.each(["reset", "fin"])("cuts a stream by %s after its events", async (kind) => {
    await start([`${kind},after=3,count=1`]);
    const { events, isComplete } = await read(await chat(STREAM));
    expect(isComplete).toBe(false);
    // A reset may overtake what was sent before it; a FIN does not.
    if (kind === "fin") expect(events).toHaveLength(3);
    else expect(events.length).toBeLessThanOrEqual(3);
    await vi.waitFor(() => expect(server.signals()).toMatchObject({ runningRequests: 0, waitingRequests: 0 }));
    expect((await read(await chat(STREAM))).isComplete).toBe(true);
  });

  it.each(["reset", "fin"])("cuts the connection by %s in place of an answer in one piece", async (kind) => {
    await start([`${kind},count=1`]);
    await expect(chat(CHAT)).rejects.toThrow();
    expect((await chat(CHAT)).status).toBe(200);
  });

  it("dies like vLLM: an error event, then a clean end", async () => {
    await start(["error,after=2,count=1"]);
    const { events, isComplete } = await read(await chat({ ...STREAM, max_tokens: 50_000, ignore_eos: true }));
    expect(isComplete).toBe(true);
    expect(events).toHaveLength(4);
    expect(JSON.parse((events[2] as string).slice("data: ".length))).toMatchObject({ error: { code: 500 } });
    expect(events[3]).toBe("data: [DONE]");
    await vi.waitFor(() => expect(server.signals().runningRequests).toBe(0));
  });

  it.each([
    ["/v1/completions", { prompt: "a" }, /^data: \{"error":/],
    ["/v1/responses", { input: "a" }, /^event: error\ndata: \{"type":"error","code":"500"/],
    ["/v1/messages", CHAT, /^event: error\ndata: \{"type":"error","error":\{"type":"api_error"/],
  ])("reports the dead engine in the form of %s", async (path, body, expected) => {
    await start(["error"]);
    const streamed = JSON.stringify({ ...body, stream: true });
    const { events } = await read(await fetch(url + path, { method: "POST", body: streamed }));
    expect(events[0]).toMatch(expected);
    const whole = await fetch(url + path, { method: "POST", body: JSON.stringify(body) });
    expect(whole.status).toBe(500);
  });

  it.each([STREAM, CHAT])("freezes the whole engine and then goes on (%#)", async (body) => {
    await start(["freeze=100,count=1"]);
    const beforeMs = performance.now();
    const [struck, other] = await Promise.all([chat(body), chat(CHAT)]);
    await Promise.all([struck.text(), other.text()]);
    expect([struck.status, other.status]).toEqual([200, 200]);
    expect(performance.now() - beforeMs).toBeGreaterThanOrEqual(100);
  });

  it("refuses stream_options where they are present", async () => {
    await start(["refuse-stream-options"]);
    const refused = await chat({ ...STREAM, stream_options: { include_usage: true } });
    expect([refused.status, JSON.stringify(await refused.json())]).toEqual([
      400,
      expect.stringContaining("stream_options"),
    ]);
    expect((await chat(STREAM)).status).toBe(200);
  });

  it("answers health probes with a status", async () => {
    await start(["health=503,count=1"]);
    expect((await fetch(`${url}/health`)).status).toBe(503);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });
});

describe("fault control", () => {
  const control = (body: unknown): Promise<Response> =>
    fetch(`${url}/faults`, { method: "POST", body: JSON.stringify(body) });

  it("replaces the script over HTTP where it is allowed", async () => {
    await start(["hold"], { allowFaultControl: true });
    expect(await (await control({ faults: ["status=418"] })).json()).toEqual({ faults: 1 });
    expect((await chat(CHAT)).status).toBe(418);
    expect((await control({ faults: [] })).status).toBe(200);
    expect((await chat(CHAT)).status).toBe(200);
  });

  it("refuses a script that is wrong and keeps the old one", async () => {
    await start(["status=418"], { allowFaultControl: true });
    const refused = await control({ faults: ["explode"] });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("explode")]);
    expect((await fetch(`${url}/faults`)).status).toBe(405);
    expect((await chat(CHAT)).status).toBe(418);
  });

  it("replaces the script from within the process", async () => {
    await start([]);
    server.setFaults(["status=429"]);
    expect((await chat(CHAT)).status).toBe(429);
    expect(() => server.setFaults(["explode"])).toThrow("explode");
  });
});
