import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type RecordedRequest, recordedRequestSchema, recordingHeaderSchema } from "../../src/core/index.ts";
import { code, hold, ok, rstAt, sse, startFake, stream, tokenEvent, USAGE_EVENT } from "../support/fake-upstream.ts";
import { CHAT, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-recording-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "traffic.jsonl");
}

function read(file: string): RecordedRequest[] {
  const [header = "", ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
  recordingHeaderSchema.parse(JSON.parse(header));
  return lines.map((line) => recordedRequestSchema.parse(JSON.parse(line)));
}

describe("a recording", () => {
  it("holds each request that generated something, as the endpoint counted it", async () => {
    const file = temporaryFile();
    const e1 = await startFake();
    const gateway = await startGateway([e1], { recording: { file, maxBytes: 1e6 } });
    const url = `${gateway.listenUrl}${PATH}`;
    const text = "a secret that nobody writes down. ".repeat(40);
    const long = { ...CHAT, messages: [{ role: "user", content: text }] };
    e1.next(ok(), ok(), sse(3), stream(tokenEvent(0) + USAGE_EVENT), rstAt(2), code(500, "{}"));
    await exchange(url, { body: long, headers: { "x-session-id": "s1" } });
    await exchange(url, { body: long, headers: { "x-session-id": "s1" } });
    for (let i = 0; i < 4; i++) await exchange(url, { body: STREAMED_CHAT });
    e1.behave(hold);
    const leaving = send(url, { body: STREAMED_CHAT });
    await e1.call(6);
    leaving.abort();
    await until(async () => (await gateway.outcomes()).client_closed === 1);
    await exchange(url, { body: "{" });
    await gateway.close();

    const requests = read(file);
    expect(requests).toHaveLength(5);
    expect(requests.map(({ out }) => out)).toEqual([3, 3, 3, 3, 2]);
    expect(requests.map((request) => request.in)).toEqual([7, 7, expect.any(Number), 7, expect.any(Number)]);
    expect(requests.every(({ model }) => model === "m")).toBe(true);
    expect(requests[0]?.session).toBe(requests[1]?.session);
    expect(requests[2]?.session).toBeUndefined();
    const times = requests.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(readFileSync(file, "utf8")).not.toContain("secret");
  });

  it("is none unless it was asked for", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    expect(gateway.runtime.recorder).toBeUndefined();
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
  });

  it("tells equal prompts from others", async () => {
    const file = temporaryFile();
    const e1 = await startFake();
    const gateway = await startGateway([e1], { recording: { file, maxBytes: 1e6 } });
    const body = (tail: string): object => ({
      ...CHAT,
      messages: [{ role: "user", content: "many words ".repeat(60) + tail.repeat(300) }],
    });
    const usage = { prompt_tokens: 300, completion_tokens: 2, total_tokens: 302 };
    e1.behave(ok({ choices: [], usage }));
    for (const tail of ["a", "b"]) await exchange(`${gateway.listenUrl}${PATH}`, { body: body(tail) });
    await gateway.close();
    const [first = [], second = []] = read(file).map(({ blocks }) => blocks);
    expect(first.length).toBe(second.length);
    expect(first.slice(0, 2)).toEqual(second.slice(0, 2));
    expect(first[2]).not.toBe(second[2]);
  });
});
