import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { mean } from "../../../bench/support/statistics.ts";
import { printTable } from "../harness/figures.ts";
import { LLAMA_MODEL, LlamaServer } from "../harness/llama-server.ts";
import { Serve } from "../harness/serve.ts";
import { type ChatMessage, type TimedAnswer, timedChat } from "../harness/timed-chat.ts";

/** An odd number, so that round robin over two servers sends a session's next turn to the other one. */
const SESSIONS = 3;
const TURNS = 3;

let engines: LlamaServer[];
const rows: Record<string, string | number>[] = [];

beforeAll(async () => {
  // A slot for each session on either server: what is measured is routing, not eviction.
  engines = await LlamaServer.startSeveral(2, { model: "smol", slots: SESSIONS, slotContext: 512 });
  return async () => {
    for (const engine of engines) await engine.kill();
  };
});

afterAll(() => {
  printTable(`SmolLM2-135M on two llama.cpp servers, ${SESSIONS} sessions of ${TURNS} turns; TTFT in ms`, rows);
});

/** Distinct from its start, so that no session finds another's prefix in a cache. */
function opening(policy: string, session: number): ChatMessage[] {
  const log = Array.from({ length: 8 }, (_, i) => `Entry ${i}: wind from ${policy} ${session}, heading ${7 * i}.`);
  return [
    { role: "system", content: `Ship ${session} of the ${policy} line. ${log.join(" ")}` },
    { role: "user", content: "Say where we are." },
  ];
}

/** All sessions take their first turn, one after the other, then all their second, and so on. */
async function converse(serve: Serve, policy: string): Promise<TimedAnswer[][]> {
  const histories = Array.from({ length: SESSIONS }, (_, session) => opening(policy, session));
  const turns: TimedAnswer[][] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const answers: TimedAnswer[] = [];
    for (const [session, messages] of histories.entries()) {
      const answer = await timedChat(serve.url, `${policy}-${session}`, {
        model: LLAMA_MODEL,
        messages,
        max_tokens: 8,
      });
      messages.push({ role: "assistant", content: answer.text }, { role: "user", content: "And now?" });
      answers.push(answer);
    }
    turns.push(answers);
  }
  return turns;
}

describe.each(["round_robin", "session_affinity", "least_delay"])("%s", (policy) => {
  it("serves sessions of several turns", async () => {
    const serve = await Serve.start(
      engines.map(({ url }) => url),
      ["--policy", policy],
    );
    onTestFinished(() => serve.stop());
    const turns = await converse(serve, policy);
    for (const [index, answers] of turns.entries()) {
      rows.push({
        policy,
        turn: index + 1,
        "mean TTFT": Math.round(mean(answers.map(({ ttftMs }) => ttftMs))),
        "max TTFT": Math.round(Math.max(...answers.map(({ ttftMs }) => ttftMs))),
        "prompt tokens": answers.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
        cached: answers.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0),
        endpoints: new Set(answers.map(({ endpoint }) => endpoint)).size,
      });
    }
    const cached = turns.flat().reduce((sum, { cachedTokens }) => sum + cachedTokens, 0);
    expect(cached).toBeGreaterThan(0);
    expect(await serve.metric("cached_tokens_total")).toBe(cached);
    if (policy === "round_robin") return;
    for (const [session, first] of (turns[0] ?? []).entries()) {
      for (const later of turns.slice(1)) {
        expect(later[session]?.endpoint).toBe(first.endpoint);
        expect(later[session]?.cachedTokens).toBeGreaterThan(first.promptTokens / 2);
      }
    }
  });
});
