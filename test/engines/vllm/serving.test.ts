import { beforeAll, describe, expect, it } from "vitest";
import { mean } from "../../../bench/support/statistics.ts";
import { describeAnthropicClient } from "../../clients/anthropic-client.ts";
import type { ClientTarget } from "../../clients/client-target.ts";
import { describeOpenAiClient } from "../../clients/openai-client.ts";
import { exchange, send } from "../../support/http-client.ts";
import { until } from "../../support/until.ts";
import { startEndlessStream, vllmChat } from "../harness/chat.ts";
import { type ChatEvent, chatEventsOf, eventsOf } from "../harness/events.ts";
import { printTable } from "../harness/figures.ts";
import { Serve } from "../harness/serve.ts";
import { type ChatMessage, timedChat } from "../harness/timed-chat.ts";
import { VLLM_CONTEXT, VLLM_KV_TOKENS, VLLM_MODEL, VllmServer } from "../harness/vllm-server.ts";

const CHAT_PATH = "/v1/chat/completions";

let engines: VllmServer[];
let serve: Serve;
let target: ClientTarget;

beforeAll(async () => {
  engines = await VllmServer.startSeveral(2);
  serve = await Serve.start(
    engines.map(({ url }) => url),
    ["--policy", "session_affinity"],
  );
  target = {
    url: serve.url,
    model: VLLM_MODEL,
    untilLimit: { ignore_eos: true, temperature: 0 },
    openWork: () => serve.openWork(),
  };
  return async () => {
    for (const engine of engines) await engine.kill();
    await serve.stop();
  };
});

async function total(name: string): Promise<number> {
  const values = await Promise.all(engines.map((engine) => engine.metric(name)));
  return values.reduce((sum, value) => sum + value, 0);
}

async function expectAllFreed(): Promise<void> {
  await expect.poll(() => serve.openWork()).toBe(0);
  await expect.poll(() => total("num_requests_running")).toBe(0);
  await expect.poll(() => total("num_requests_waiting")).toBe(0);
}

describe("what the engines report", () => {
  it("is read: their kind, the size of the KV cache, what runs", async () => {
    const reports = await serve.endpoints();
    expect(reports.map(({ engine }) => engine)).toEqual(["vllm", "vllm"]);
    await expect
      .poll(async () => (await serve.endpoints()).map(({ kvCapacityTokens }) => kvCapacityTokens))
      .toEqual([VLLM_KV_TOKENS, VLLM_KV_TOKENS]);
    const stream = await startEndlessStream(serve.url, vllmChat(1500));
    await expect
      .poll(async () => (await serve.endpoints()).map(({ signals }) => signals?.runningRequests).sort())
      .toEqual([0, 1]);
    stream.abort();
    await expectAllFreed();
  });
});

describe("streams", () => {
  it("are counted exactly, though the client asked for no usage and sees none", async () => {
    const before = {
      output: await serve.metric("output_tokens_total"),
      prompt: await serve.metric("prompt_tokens_total"),
    };
    const streamed = await exchange(`${serve.url}${CHAT_PATH}`, { body: { ...vllmChat(40), stream: true } });
    expect(streamed.isWhole).toBe(true);
    expect(eventsOf(streamed.text).at(-1)).toBe("[DONE]");
    expect(chatEventsOf(streamed.text).every(({ choices }) => choices.length === 1)).toBe(true);
    const whole = await exchange(`${serve.url}${CHAT_PATH}`, { body: vllmChat(40) });
    const { usage } = JSON.parse(whole.text) as Required<ChatEvent>;
    expect((await serve.metric("output_tokens_total")) - before.output).toBe(80);
    expect((await serve.metric("prompt_tokens_total")) - before.prompt).toBe(2 * usage.prompt_tokens);
  });

  it("report usage to a client that asks for it", async () => {
    const body = { ...vllmChat(12), stream: true, stream_options: { include_usage: true } };
    const { text } = await exchange(`${serve.url}${CHAT_PATH}`, { body });
    expect(chatEventsOf(text).at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 12 } });
  });

  it("count tokens whose text is still empty", async () => {
    const before = await serve.metric("output_tokens_total");
    // Without its end there is no usage: what is counted is what was seen to pass.
    const call = send(`${serve.url}${CHAT_PATH}`, { body: { ...vllmChat(1500), temperature: 1, stream: true } });
    await until(() => chatEventsOf(call.text).length > 60);
    const seen = chatEventsOf(call.text).filter(({ choices }) => choices[0]?.delta.role === undefined);
    call.abort();
    await expectAllFreed();
    const counted = (await serve.metric("output_tokens_total")) - before;
    expect(seen.filter(({ choices }) => choices[0]?.delta.content === "").length).toBeGreaterThan(0);
    expect(counted).toBeGreaterThanOrEqual(seen.length);
  });
});

describe("a prompt that is longer than the context", () => {
  it("gets the engine's own 400 unchanged, on one endpoint, and says nothing about health", async () => {
    const body = vllmChat(4, "the ".repeat(2 * VLLM_CONTEXT));
    const alone = await exchange(`${engines[0]?.url}${CHAT_PATH}`, { body });
    for (const stream of [false, true]) {
      const balanced = await exchange(`${serve.url}${CHAT_PATH}`, { body: { ...body, stream } });
      expect(balanced.status).toBe(400);
      expect(balanced.text).toBe(alone.text);
    }
    expect(await serve.outcomes("upstream_4xx")).toBe(2);
    expect(await serve.metric("attempts_failed_total")).toBe(0);
    expect((await serve.endpoints()).map(({ availability }) => availability)).toEqual(["ready", "ready"]);
  });
});

describe("a client that leaves", () => {
  it.each([
    { phase: "in the middle of a stream", stream: true },
    { phase: "while it waits for a whole answer", stream: false },
  ])("$phase ends the generation", async ({ stream }) => {
    const before = await total("generation_tokens_total");
    const call = send(`${serve.url}${CHAT_PATH}`, { body: { ...vllmChat(1900), stream } });
    call.request.on("error", () => {});
    await expect.poll(() => total("num_requests_running")).toBe(1);
    call.abort();
    await expectAllFreed();
    expect((await total("generation_tokens_total")) - before).toBeLessThan(1900);
  });

  it("while its request waits leaves the engine's queue", async () => {
    const headers = { "x-session-id": "one" };
    const body = { ...vllmChat(1900), stream: true };
    const calls = Array.from({ length: 12 }, () => send(`${serve.url}${CHAT_PATH}`, { body, headers }));
    await expect.poll(() => total("num_requests_waiting")).toBeGreaterThan(0);
    for (const call of calls) call.abort();
    await expectAllFreed();
  });
});

it("finds the first turn of a session in the prefix cache at the second", async () => {
  const sessions = ["red", "green", "blue"].map((name) => ({
    name,
    messages: [{ role: "user", content: `The ${name} ship: ${"wind and keel and sail ".repeat(60)}` }] as ChatMessage[],
  }));
  const rows = [];
  for (const turn of [1, 2]) {
    const answers = [];
    for (const { name, messages } of sessions) {
      const answer = await timedChat(serve.url, name, { model: VLLM_MODEL, messages, max_tokens: 8 });
      messages.push({ role: "assistant", content: answer.text }, { role: "user", content: "and then" });
      answers.push(answer);
    }
    const cachedTokens = answers.reduce((sum, answer) => sum + answer.cachedTokens, 0);
    rows.push({
      turn,
      "mean TTFT": Math.round(mean(answers.map(({ ttftMs }) => ttftMs))),
      "prompt tokens": answers.reduce((sum, answer) => sum + answer.promptTokens, 0),
      cached: cachedTokens,
    });
    if (turn === 2) expect(answers.every((answer) => answer.cachedTokens > 0)).toBe(true);
  }
  printTable("vLLM, tiny model, two servers, session_affinity; TTFT in ms", rows);
  expect(await serve.metric("cached_tokens_total")).toBeGreaterThan(0);
});

describeOpenAiClient(() => target);
describeAnthropicClient(() => target);
