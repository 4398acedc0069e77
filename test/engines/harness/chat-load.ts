import { Agent, type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, seededRandom } from "../../../src/core/index.ts";
import { chatEventsOf } from "./events.ts";
import { VLLM_MODEL } from "./vllm-server.ts";

/** Requests that arrive as a Poisson process, with prompts from two ranges of lengths. */
export interface LoadSpec {
  readonly seed: number;
  readonly seconds: number;
  readonly perSecond: number;
  /** In words, which are a token each, evenly spread; the chat template adds 8. */
  readonly shortWords: readonly [least: number, most: number];
  readonly longWords: readonly [least: number, most: number];
  readonly longShare: number;
  /** Lengths are spread as in an exponential distribution. */
  readonly meanAnswerTokens: number;
}

export interface LoadRequest {
  readonly atMs: number;
  readonly isLong: boolean;
  readonly content: string;
  readonly answerTokens: number;
}

/** What became of a request; times are of its client. */
export interface LoadAnswer {
  readonly isLong: boolean;
  /** The whole answer came, with all of its tokens. */
  readonly isWhole: boolean;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly outputTokens: number;
}

/**
 * The same specification always draws the same requests. Chance has the order and the moments; how many requests there
 * are, and which lengths they have between them, is as the distributions have it: runs of a minute or two would
 * otherwise differ in their work by a fifth.
 */
export function drawLoad({
  seed,
  seconds,
  perSecond,
  shortWords,
  longWords,
  longShare,
  ...answers
}: LoadSpec): LoadRequest[] {
  const random = seededRandom(seed);
  const count = Math.round(seconds * perSecond);
  const longCount = Math.round(count * longShare);
  // A Poisson process with so many arrivals in that time.
  const times = Array.from({ length: count }, () => random.next() * seconds * 1000).sort((a, b) => a - b);
  const prompts = shuffled(
    [
      ...spread(longCount, longWords).map((words) => ({ words, isLong: true })),
      ...spread(count - longCount, shortWords).map((words) => ({ words, isLong: false })),
    ],
    random,
  );
  const lengths = shuffled(
    levels(count).map((level) => Math.max(1, Math.round(-Math.log(1 - level) * answers.meanAnswerTokens))),
    random,
  );
  return times.map((atMs, i) => {
    const { words, isLong } = prompts[i] as (typeof prompts)[number];
    // Random from the first word on: no prompt has another's beginning.
    const content = Array.from({ length: words }, () => WORDS[Math.floor(random.next() * WORDS.length)]).join(" ");
    return { atMs, isLong, content, answerTokens: lengths[i] as number };
  });
}

/** Sends each request at its time, however many are under way, and waits for all answers. */
export async function runLoad(url: string, requests: readonly LoadRequest[]): Promise<LoadAnswer[]> {
  const agent = new Agent({ keepAlive: true });
  const startMs = performance.now();
  const answers: Promise<LoadAnswer>[] = [];
  for (const planned of requests) {
    const leftMs = planned.atMs - (performance.now() - startMs);
    if (leftMs > 0) await sleep(leftMs);
    answers.push(ask(`${url}/v1/chat/completions`, planned, agent));
  }
  const all = await Promise.all(answers);
  agent.destroy();
  return all;
}

async function ask(url: string, { content, answerTokens, isLong }: LoadRequest, agent: Agent): Promise<LoadAnswer> {
  const startMs = performance.now();
  let ttftMs = Number.NaN;
  let end = "";
  const response = await post(url, agent, {
    model: VLLM_MODEL,
    messages: [{ role: "user", content }],
    stream: true,
    stream_options: { include_usage: true },
    ignore_eos: true,
    // Nobody between here and the engine core knows the length.
    vllm_xargs: { answer_tokens: answerTokens },
  });
  response.setEncoding("utf8");
  for await (const text of response) {
    // The role comes with the first token.
    if (Number.isNaN(ttftMs) && text.includes("data:")) ttftMs = performance.now() - startMs;
    end = (end + text).slice(-END_LENGTH);
  }
  const totalMs = performance.now() - startMs;
  const isDone = response.statusCode === 200 && end.trimEnd().endsWith("data: [DONE]");
  const outputTokens = isDone ? outputTokensOf(end) : 0;
  return { isLong, isWhole: outputTokens === answerTokens, ttftMs, totalMs, outputTokens };
}

function post(url: string, agent: Agent, body: object): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    request(url, { method: "POST", agent, headers }, resolve).on("error", reject).end(JSON.stringify(body));
  });
}

/** From the usage in the last event. */
function outputTokensOf(end: string): number {
  const whole = end.slice(end.indexOf("\n\n") + 2);
  return chatEventsOf(whole).findLast(({ usage }) => usage != null)?.usage?.completion_tokens ?? 0;
}

/** Levels of a distribution that are evenly far from each other, 0 to 1. */
function levels(count: number): number[] {
  return Array.from({ length: count }, (_, i) => (i + 0.5) / count);
}

function spread(count: number, [least, most]: readonly [number, number]): number[] {
  return levels(count).map((level) => Math.round(least + level * (most - least)));
}

function shuffled<T>(values: readonly T[], random: Random): T[] {
  return values
    .map((value) => ({ value, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ value }) => value);
}

/** Holds the last events of a stream. */
const END_LENGTH = 2000;

/** Each a token of the tiny model, with the space before it. */
const WORDS = [
  "the",
  "water",
  "long",
  "first",
  "way",
  "day",
  "down",
  "could",
  "people",
  "word",
  "time",
  "number",
  "write",
];
