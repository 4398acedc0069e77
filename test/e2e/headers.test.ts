import { describe, expect, it } from "vitest";
import { Secret } from "../../src/config/index.ts";
import { ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, type SendOptions } from "../support/http-client.ts";
import { testEndpoint } from "../support/test-config.ts";
import { startGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";

async function headersSeen(headers: SendOptions["headers"], apiKey?: string) {
  const e1 = await startFake();
  const endpoints = [testEndpoint("e1", e1.url, { apiKey: apiKey === undefined ? undefined : new Secret(apiKey) })];
  const gateway = await startGateway([], { pool: { endpoints } });
  const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT, headers: headers ?? {} });
  expect(answer.status).toBe(200);
  const call = await e1.call(0);
  return { seen: call.headers, raw: call.rawHeaders, url: e1.url, answer };
}

describe("headers to the endpoint", () => {
  it("pass on, but for those of the connection and those named in it", async () => {
    const { seen, url } = await headersSeen({
      connection: "close, X-Secret, Authorization, x-api-key",
      "keep-alive": "timeout=5",
      "proxy-authorization": "Basic x",
      "proxy-connection": "keep-alive",
      te: "trailers",
      trailer: "x-sum",
      upgrade: "websocket",
      "x-secret": "1",
      authorization: "Bearer client",
      "x-api-key": "client",
      "x-other": "passes",
      "openai-beta": "assistants=v2",
      "x-stainless-retry-count": "1",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "idempotency-key": "i",
      "user-agent": "sdk",
    });
    for (const name of [
      "keep-alive",
      "proxy-authorization",
      "proxy-connection",
      "te",
      "trailer",
      "upgrade",
      "x-secret",
    ]) {
      expect(seen).not.toHaveProperty(name);
    }
    expect(seen).toMatchObject({
      host: new URL(url).host,
      connection: "keep-alive",
      authorization: "Bearer client",
      "x-api-key": "client",
      "x-other": "passes",
      "openai-beta": "assistants=v2",
      "x-stainless-retry-count": "1",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "idempotency-key": "i",
      "user-agent": "sdk",
      "content-type": "application/json",
    });
  });

  it("carry the endpoint's own key in place of the client's credentials", async () => {
    const { seen } = await headersSeen({ authorization: "Bearer client", "x-api-key": "client" }, "endpoint-key");
    expect(seen.authorization).toBe("Bearer endpoint-key");
    expect(seen).not.toHaveProperty("x-api-key");
  });

  it.each([
    "x-gateway-destination-endpoint",
    "X-Gateway-Destination-Endpoint",
    "x_gateway_destination_endpoint",
    "x-smg-target-worker",
    "target-pod",
    "x-data-parallel-rank",
    "X-Original-Dst-Host",
    "x-envoy-original-dst-host",
    "X_Envoy_Upstream_Host",
    "x-llm-d-inference-pool",
    "x-prefiller-host-port",
    "x-evenkeel-endpoint",
    "x-evenkeel-priority",
    "x-evenkeel-timeout-ms",
  ])("never carry a client's %s, and it chooses nothing", async (name) => {
    const { seen, answer } = await headersSeen({ [name]: ["http://169.254.169.254/", "http://127.0.0.1:1/"] });
    expect(Object.keys(seen)).not.toContain(name.toLowerCase());
    expect(answer.headers["x-evenkeel-endpoint"]).toBe("e1");
  });

  it("say where the request comes from and came by", async () => {
    const { seen } = await headersSeen({});
    expect(seen).toMatchObject({ "x-forwarded-for": "127.0.0.1", via: "1.1 evenkeel" });
    const chained = await headersSeen({ "x-forwarded-for": "203.0.113.7", via: "1.1 front" });
    expect(chained.seen).toMatchObject({ "x-forwarded-for": "203.0.113.7, 127.0.0.1", via: "1.1 front, 1.1 evenkeel" });
  });
});

describe("the request id", () => {
  it("of the client is taken to the endpoint and back", async () => {
    const { seen, answer } = await headersSeen({ "x-request-id": "req-1.a:b" });
    expect(seen["x-request-id"]).toBe("req-1.a:b");
    expect(answer.headers["x-request-id"]).toBe("req-1.a:b");
  });

  it.each(["has spaces", "x".repeat(129), '"quoted"', "<script>", ""])("that is unfit (%j) is replaced", async (id) => {
    const { seen, answer } = await headersSeen({ "x-request-id": id });
    expect(answer.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen["x-request-id"]).toBe(answer.headers["x-request-id"]);
  });
});

describe("headers to the client", () => {
  it("pass on, repeated ones repeated, but for those of the connection", async () => {
    const e1 = await startFake(
      ok("{}", {
        connection: "keep-alive, x-internal",
        "keep-alive": "timeout=7",
        "x-internal": "1",
        "proxy-authenticate": "Basic",
        "set-cookie": ["a=1", "b=2; Path=/", "c=3"],
        vary: ["origin", "accept"],
        "access-control-allow-origin": "https://a.example",
        "openai-processing-ms": "12",
        "x-request-id": "engines-own",
        "x-evenkeel-endpoint": "forged",
        "x-evenkeel-policy": "forged",
        server: "uvicorn",
        date: "Thu, 01 Jan 2026 00:00:00 GMT",
      }),
    );
    const gateway = await startGateway([e1]);
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT, headers: { "x-request-id": "ours" } });
    for (const name of ["x-internal", "proxy-authenticate"]) expect(answer.headers).not.toHaveProperty(name);
    const values = (name: string): string[] =>
      answer.rawHeaders.filter((_, i) => i % 2 === 1 && answer.rawHeaders[i - 1]?.toLowerCase() === name);
    expect(values("set-cookie")).toEqual(["a=1", "b=2; Path=/", "c=3"]);
    expect(values("vary")).toEqual(["origin", "accept"]);
    expect(values("access-control-allow-origin")).toEqual(["https://a.example"]);
    expect(values("x-request-id")).toEqual(["ours"]);
    expect(values("x-upstream-request-id")).toEqual(["engines-own"]);
    expect(values("x-evenkeel-endpoint")).toEqual(["e1"]);
    expect(values("x-evenkeel-policy")).toEqual(["round_robin"]);
    expect(values("openai-processing-ms")).toEqual(["12"]);
    expect(values("server")).toEqual(["uvicorn"]);
    expect(values("date")).toEqual(["Thu, 01 Jan 2026 00:00:00 GMT"]);
    expect(values("keep-alive")).not.toContain("timeout=7");
    expect(values("content-length")).toEqual([]);
  });

  it("hold bytes beyond ASCII as they came", async () => {
    const e1 = await startFake(({ socket }) => {
      const head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Name: gr\xfc\xdfe\r\n\r\n{}";
      socket.write(Buffer.from(head, "latin1"));
    });
    const gateway = await startGateway([e1]);
    const { headers } = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    expect(headers["x-name"]).toBe("gr\xfc\xdfe");
  });

  it("carry Anthropic's name of the request id on its route alone", async () => {
    const e1 = await startFake(ok("{}", { "request-id": "engines-own" }));
    const gateway = await startGateway([e1]);
    const options = { body: CHAT, headers: { "x-request-id": "ours" } };
    const messages = await exchange(`${gateway.listenUrl}/v1/messages`, options);
    expect(messages.headers).toMatchObject({ "request-id": "ours", "x-request-id": "ours" });
    const chat = await exchange(`${gateway.listenUrl}${PATH}`, options);
    expect(chat.headers["request-id"]).toBe("engines-own");
  });
});
