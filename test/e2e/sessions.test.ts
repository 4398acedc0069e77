import { describe, expect, it } from "vitest";
import { hold, ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, send } from "../support/http-client.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const AFFINITY = { policy: { name: "session_affinity", options: {} } };

/** Sends a request of `session`. @returns the endpoint that answered it. */
async function servedBy(gateway: TestGateway, session: string): Promise<string> {
  const headers = { "x-session-id": session };
  const answer = await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT, headers });
  expect(answer.status).toBe(200);
  return String(answer.headers["x-evenkeel-endpoint"]);
}

/** A session that belongs to `endpoint`. */
async function sessionOf(gateway: TestGateway, endpoint: string): Promise<string> {
  for (let i = 0; ; i++) if ((await servedBy(gateway, `s${i}`)) === endpoint) return `s${i}`;
}

function availability(gateway: TestGateway, index: number): string | undefined {
  return gateway.runtime.pools[0]?.balancer.members[index]?.availability;
}

describe("requests without a usable session key", () => {
  it("are spread by load, whatever they have in its place, and are counted", async () => {
    const fakes = [await startFake(hold), await startFake(hold)];
    const gateway = await startGateway(fakes, { pool: AFFINITY });
    const counts = (): number[] => fakes.map(({ calls }) => calls.length);
    const clients = [];
    const keys = [{}, { "x-session-id": "" }, { "x-session-id": "   " }, { "x-session-id": "k".repeat(10_000) }];
    for (const [group, headers] of keys.entries()) {
      for (let i = 0; i < 100; i++) clients.push(send(`${gateway.listenUrl}${PATH}`, { body: CHAT, headers }));
      await until(() => counts().reduce((a, b) => a + b) === 100 * (group + 1));
      expect(counts()).toEqual([50 * (group + 1), 50 * (group + 1)]);
    }
    expect(await gateway.metric("evenkeel_session_keys_total", { result: "absent" })).toBe(100);
    expect(await gateway.metric("evenkeel_session_keys_total", { result: "unusable" })).toBe(300);
    for (const client of clients) client.abort();
    await expectIdle(gateway);
  });
});

describe("a session whose endpoint refuses connections", () => {
  it("is served elsewhere at once, goes there directly from then on, and returns when its endpoint does", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const { port } = new URL(e1.url);
    const gateway = await startGateway([e1, e2], { pool: AFFINITY });
    const session = await sessionOf(gateway, "e1");
    await e1.kill();
    expect(await servedBy(gateway, session)).toBe("e2");
    await until(() => availability(gateway, 0) === "down");
    const failed = await gateway.metric("evenkeel_attempts_failed_total");
    for (let i = 0; i < 5; i++) expect(await servedBy(gateway, session)).toBe("e2");
    expect(await gateway.metric("evenkeel_attempts_failed_total")).toBe(failed);
    await startFake(ok(), { port: Number(port) });
    await until(() => availability(gateway, 0) === "ready");
    for (let i = 0; i < 5; i++) expect(await servedBy(gateway, session)).toBe("e1");
    await expectIdle(gateway);
  });

  it("does not take along sessions of other endpoints", async () => {
    const fakes = [await startFake(), await startFake(), await startFake()];
    const gateway = await startGateway(fakes, { pool: AFFINITY });
    const sessions = Array.from({ length: 30 }, (_, i) => `s${i}`);
    const places = async (): Promise<string[]> => {
      const served = [];
      for (const session of sessions) served.push(await servedBy(gateway, session));
      return served;
    };
    const before = await places();
    await fakes[2]?.kill();
    await until(() => availability(gateway, 2) === "down");
    const during = await places();
    expect(during).not.toContain("e3");
    for (const [i, endpoint] of before.entries()) if (endpoint !== "e3") expect(during[i]).toBe(endpoint);
  });
});

describe("a prompt of token ids", () => {
  it.each([
    { what: "ids", prompt: Array.from({ length: 2000 }, (_, i) => i) },
    { what: "lists of ids", prompt: [Array.from({ length: 2000 }, (_, i) => i), [1, 2, 3]] },
  ])("goes back to where it was computed: $what", async ({ prompt }) => {
    const fakes = [await startFake(), await startFake()];
    const gateway = await startGateway(fakes, { pool: { policy: { name: "least_delay", options: {} } } });
    const body = { model: "m", prompt, max_tokens: 4 };
    const served = new Set<unknown>();
    for (let i = 0; i < 6; i++) {
      const answer = await exchange(`${gateway.listenUrl}/v1/completions`, { body });
      expect(answer.status).toBe(200);
      served.add(answer.headers["x-evenkeel-endpoint"]);
    }
    expect(served.size).toBe(1);
  });
});
