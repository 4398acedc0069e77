import { describe, expect, it } from "vitest";
import { ok, rstAt, sse, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT } from "../support/http-client.ts";
import { startGateway, type TestGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";

async function page(gateway: TestGateway): Promise<string> {
  return (await fetch(`${gateway.admin}/metrics`)).text();
}

/** Every series without its value. */
function seriesOf(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.slice(0, line.lastIndexOf(" ")));
}

describe("the metrics page", () => {
  it("has the same series after hundreds of requests that all say something new", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1], { pool: { models: ["m"] } });
    const url = gateway.listenUrl;
    const send = async (i: number): Promise<void> => {
      const headers = {
        "x-session-id": `session-${i}`,
        "x-request-id": `request-${i}`,
        authorization: `Bearer key-${i}`,
        "user-agent": `agent/${i}`,
        "x-tenant": `tenant-${i}`,
        "x-evenkeel-priority": `p${i}`,
      };
      const body = { ...CHAT, user: `user-${i}`, metadata: { user_id: `user-${i}` } };
      await Promise.all([
        exchange(`${url}${PATH}`, { body: { ...body, model: `typo-${i}"\\\n` }, headers }),
        exchange(`${url}${PATH}?q=${i}`, { body, headers }),
        exchange(`${url}/path/${i}`, { method: i % 2 === 0 ? "PURGE" : "GET", headers }),
        exchange(`${url}/v1/models/${i}`, { method: "GET", headers }),
      ]);
    };
    await send(0);
    const before = seriesOf(await page(gateway));
    for (let i = 1; i <= 100; i++) await send(i);
    const text = await page(gateway);
    expect(seriesOf(text)).toEqual(before);
    for (const made of ["typo-", "session-", "request-", "tenant-", "user-", "key-", "agent/", "/path/"]) {
      expect(text).not.toContain(made);
    }
    // What was made up is counted all the same.
    expect(await gateway.outcomes()).toMatchObject({ ok: 101, model_not_found: 202, route_not_found: 101 });
  });

  it("holds names with quotes, backslashes and line ends as the format wants them", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1], { pool: { name: 'a"b\\c\nd' } });
    await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    const text = await page(gateway);
    expect(text).toContain(String.raw`pool="a\"b\\c\nd"`);
    for (const line of text.split("\n")) expect(line).toMatch(/^$|^# |^[a-z_]+(\{.*\})? \S+$/);
  });

  it("times only what there was: no first token without one, no duration of 0", async () => {
    const e1 = await startFake();
    e1.next(sse(3), rstAt(2), sse(0), ok());
    const gateway = await startGateway([e1]);
    const url = `${gateway.listenUrl}${PATH}`;
    for (let i = 0; i < 3; i++) await exchange(url, { body: STREAMED_CHAT });
    await exchange(url, { body: CHAT });
    await exchange(url, { body: "{" });
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_count")).toBe(2);
    expect(await gateway.metric("evenkeel_request_duration_seconds_count")).toBe(3);
    expect(await gateway.metric("evenkeel_time_to_first_token_seconds_sum")).toBeGreaterThan(0);
    expect(await gateway.metric("evenkeel_request_duration_seconds_sum")).toBeGreaterThan(0);
  });
});
