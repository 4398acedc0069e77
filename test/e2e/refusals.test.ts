import { describe, expect, it, vi } from "vitest";
import type { HoldingLimits } from "../../src/core/index.ts";
import type { ServedPool } from "../../src/runtime/index.ts";
import { headThenHold, REFUSING_URL, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig, testEndpoint } from "../support/test-config.ts";
import { runGateway, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** One endpoint that has as many requests as it may, all of which stay. */
async function startFull(holding: Partial<HoldingLimits>): Promise<TestGateway> {
  const e1 = await startFake(headThenHold);
  const endpoints = [testEndpoint("e1", e1.url, { maxRequests: 1 })];
  const limits = { maxRequests: 10, maxBytes: 1_000_000, maxWaitMs: 60_000, promoteAfterMs: 10_000, ...holding };
  const policy = { name: "least_connections", options: {} };
  const gateway = await startGateway([], { pool: { policy, endpoints, holding: limits } });
  send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
  await e1.call(0);
  return gateway;
}

interface Case {
  readonly what: string;
  start(): Promise<TestGateway>;
  readonly status: number;
  readonly code: string;
  readonly hasRetryAfter: boolean;
}

const CASES: readonly Case[] = [
  {
    what: "as many wait as may",
    async start() {
      const gateway = await startFull({ maxRequests: 1 });
      send(`${gateway.listenUrl}${PATH}`, { body: CHAT });
      await until(() => gateway.runtime.pools[0]?.balancer.heldRequests === 1);
      return gateway;
    },
    status: 429,
    code: "queue_full",
    hasRetryAfter: true,
  },
  {
    what: "its wait is over",
    start: () => startFull({ maxWaitMs: 100 }),
    status: 429,
    code: "queue_timeout",
    hasRetryAfter: true,
  },
  {
    what: "its client has no patience to wait at all",
    start: () => startFull({ maxWaitMs: 1 }),
    status: 429,
    code: "queue_timeout",
    hasRetryAfter: true,
  },
  {
    what: "all endpoints are full and nobody may wait",
    start: () => startFull({ maxRequests: 0 }),
    status: 429,
    code: "overloaded",
    hasRetryAfter: true,
  },
  {
    what: "all endpoints are drained by their weight",
    async start() {
      const e1 = await startFake();
      return runGateway(testConfig([], { pool: { endpoints: [testEndpoint("e1", e1.url, { weight: 0 })] } }));
    },
    status: 503,
    code: "no_available_endpoint",
    hasRetryAfter: true,
  },
  {
    what: "all endpoints are down",
    async start() {
      const gateway = await runGateway(testConfig([REFUSING_URL]));
      await until(() => gateway.runtime.pools[0]?.balancer.members[0]?.availability === "down");
      return gateway;
    },
    status: 503,
    code: "no_available_endpoint",
    hasRetryAfter: true,
  },
  {
    what: "something inside fails",
    async start() {
      const gateway = await startGateway([await startFake()]);
      vi.spyOn((gateway.runtime.pools[0] as ServedPool).balancer, "decide").mockImplementation(() => {
        throw new Error("a bug");
      });
      return gateway;
    },
    status: 500,
    code: "internal_error",
    hasRetryAfter: false,
  },
];

describe.each([
  { kind: "streamed", body: STREAMED_CHAT },
  { kind: "whole", body: CHAT },
])("a $kind request", ({ body }) => {
  it.each(CASES)("is refused with $status $code when $what", async ({ start, status, code, hasRetryAfter }) => {
    const gateway = await start();
    const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body });
    expect(answer).toMatchObject({ status, isWhole: true });
    expect(JSON.parse(answer.text).error.code).toBe(code);
    expect(answer.headers["x-evenkeel-reason"]).toBe(code);
    expect(/^[1-9]\d*$/.test(answer.headers["retry-after"] ?? "")).toBe(hasRetryAfter);
    expect((await gateway.outcomes())[code]).toBe(1);
  });

  it("of a client that leaves is no error of anybody's", async () => {
    const gateway = await startFull({});
    const client = send(`${gateway.listenUrl}${PATH}`, { body });
    await until(() => gateway.runtime.pools[0]?.balancer.heldRequests === 1);
    client.abort();
    await until(async () => (await gateway.outcomes()).client_closed === 1);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });
});

describe("a refusal in Anthropic's shape", () => {
  it("says why in a header, since its body has no place for that", async () => {
    const gateway = await startFull({ maxRequests: 0 });
    const answer = await exchange(`${gateway.listenUrl}/v1/messages`, { body: { ...CHAT, max_tokens: 5 } });
    expect(answer).toMatchObject({ status: 429, headers: { "x-evenkeel-reason": "overloaded" } });
    expect(JSON.parse(answer.text)).toMatchObject({ type: "error", error: { type: "overloaded_error" } });
  });
});
