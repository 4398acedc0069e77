import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { type FakeUpstream, hold, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, send } from "../support/http-client.ts";
import { testEndpoint } from "../support/test-config.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const MODELS = JSON.stringify({ object: "list", data: [{ id: "m", object: "model", owned_by: "vllm" }] });
const HEALTH = { intervalMs: 30, timeoutMs: 100 };

type Metrics = (response: ServerResponse) => void;

/** Makes the fake a vLLM that is well, and answers `/metrics` as told. */
function asVllm(fake: FakeUpstream, metrics: Metrics): FakeUpstream {
  fake.onProbe = ({ url }: IncomingMessage, response: ServerResponse) => {
    if (url === "/metrics") metrics(response);
    else if (url === "/v1/models") response.writeHead(200, { "content-type": "application/json" }).end(MODELS);
    else response.writeHead(url === "/health" ? 200 : 404).end();
  };
  return fake;
}

async function start(...fakes: readonly FakeUpstream[]): Promise<TestGateway> {
  const endpoints = fakes.map(({ url }, i) => testEndpoint(`e${i + 1}`, url, { engine: "vllm" }));
  const pool = { policy: { name: "least_connections", options: {} }, endpoints };
  return startGateway([], { pool, health: HEALTH });
}

function failures(gateway: TestGateway): number {
  return gateway.runtime.pools[0]?.monitor("e1").scrapeFailures ?? 0;
}

const well: Metrics = (response) => response.end("vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n");

describe("metrics of an engine", () => {
  it.each<{ readonly what: string; readonly metrics: Metrics }>([
    { what: "never come", metrics: () => {} },
    { what: "fail", metrics: (response) => response.writeHead(500).end() },
    { what: "are garbage", metrics: (response) => response.end("\0{}<<<\n".repeat(100)) },
    { what: "are 10 MB", metrics: (response) => response.end("x".repeat(10_000_000)) },
    { what: "break off", metrics: (response) => void response.write("vllm:num_", () => response.destroy()) },
  ])("that $what keep it in, are counted, and its load is what was sent there", async ({ metrics }) => {
    const [e1, e2] = [asVllm(await startFake(hold), metrics), asVllm(await startFake(hold), well)];
    const gateway = await start(e1, e2);
    const url = `${gateway.listenUrl}${PATH}`;
    const clients = [];
    for (let sent = 1; sent <= 8; sent++) {
      clients.push(send(url, { body: CHAT }));
      await until(() => e1.calls.length + e2.calls.length === sent);
    }
    expect([e1.calls.length, e2.calls.length]).toEqual([4, 4]);
    await until(() => failures(gateway) >= 3);
    expect(gateway.runtime.pools[0]?.balancer.members.map(({ availability }) => availability)).toEqual([
      "ready",
      "ready",
    ]);
    for (const client of clients) client.abort();
    await expectIdle(gateway);
  });

  it("that went stale are no reason to send nothing to the only endpoint", async () => {
    let isStale = false;
    const e1 = asVllm(await startFake(), (response) => {
      if (!isStale) response.end("vllm:num_requests_running 99\nvllm:num_requests_waiting 99\n");
    });
    const gateway = await start(e1);
    await until(() => gateway.runtime.pools[0]?.balancer.members[0]?.signals?.waitingRequests === 99);
    isStale = true;
    await until(() => failures(gateway) >= 3);
    for (let i = 0; i < 10; i++) {
      expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
    }
  });

  it("that leave a figure out make nobody look idle", async () => {
    const unknown: Metrics = (response) => response.end("vllm:something_new 1\n");
    const [e1, e2] = [asVllm(await startFake(hold), unknown), asVllm(await startFake(hold), well)];
    const gateway = await start(e1, e2);
    await until(() => failures(gateway) >= 1);
    const clients = Array.from({ length: 10 }, () => send(`${gateway.listenUrl}${PATH}`, { body: CHAT }));
    await until(() => e1.calls.length + e2.calls.length === 10);
    expect(e1.calls).toHaveLength(5);
    for (const client of clients) client.abort();
    await expectIdle(gateway);
  });
});
