import { type Random, seededRandom } from "../../src/core/index.ts";
import { TEXT_APIS, type TextApi } from "../support/text-api.ts";
import { type Question, TextClient } from "../support/text-call.ts";

/** Weights of the APIs: most clients chat. */
const APIS: readonly (readonly [TextApi["name"], number])[] = [
  ["chat", 12],
  ["completions", 5],
  ["messages", 4],
  ["responses", 3],
];

/** Answers of at most this length have exactly the length that was asked for (docs/engine.md). */
const MAX_EXACT_TOKENS = 64;
/** The tiny model makes hundreds a second: answers are to last long enough to be struck. */
const LLAMA_TOKENS = 120;
/** Choices of a long question: its stream is half a megabyte, far beyond what sockets hold. */
const LONG_CHOICES = 32;

/**
 * Questions with the answers that an engine gives when it is asked directly. They are few, so that everything the
 * balancer learns of prompts is learned before anything is measured.
 * @throws when the engine does not answer one of them.
 */
export async function builtInQuestions(engineUrl: string, model: string, seed: number): Promise<BuiltInQuestions> {
  const random = seededRandom(seed);
  const client = new TextClient(engineUrl, model);
  const questions: Question[] = [];
  for (const [name, weight] of APIS) {
    for (let i = 0; i < weight; i++) questions.push(...(await answered(client, anyQuestion(apiNamed(name), random))));
  }
  const [, long] = await answered(client, longQuestion(apiNamed("chat"), random));
  client.close();
  return { questions, longQuestions: long === undefined ? [] : [long] };
}

export interface BuiltInQuestions {
  readonly questions: readonly Question[];
  readonly longQuestions: readonly Question[];
}

/** Questions for real engines: their texts differ, their lengths do not. */
export function llamaQuestions(seed: number): readonly Question[] {
  const random = seededRandom(seed);
  return (["chat", "completions"] as const).flatMap((name) =>
    Array.from({ length: 8 }, () => {
      const question = anyQuestion(apiNamed(name), random, LLAMA_TOKENS);
      return { ...question, isStream: random.next() < 0.6, body: { ...question.body, ignore_eos: true } };
    }),
  );
}

/** @param mostTokens Of the answer. */
function anyQuestion(api: TextApi, random: Random, mostTokens: number = 40): Question {
  const outputTokens = 4 + Math.floor(random.next() * mostTokens);
  const prompt = words(20 + Math.floor(random.next() * 400), random);
  return { api, isStream: false, body: api.body(prompt, outputTokens), outputTokens, texts: undefined };
}

function longQuestion(api: TextApi, random: Random): Question {
  const body = { ...api.body(words(50, random), MAX_EXACT_TOKENS), n: LONG_CHOICES };
  return { api, isStream: false, body, outputTokens: LONG_CHOICES * MAX_EXACT_TOKENS, texts: undefined };
}

/** The question asked for an answer in one piece and for a stream, with the texts that are right for both. */
async function answered(client: TextClient, question: Question): Promise<[Question, Question]> {
  const call = await client.ask("reference", question);
  if (call.ending !== "whole") throw new Error(`the engine itself answers ${call.status}: ${call.cause}`);
  const { texts } = call;
  return [
    { ...question, texts },
    { ...question, texts, isStream: true },
  ];
}

function apiNamed(name: TextApi["name"]): TextApi {
  return TEXT_APIS.find((api) => api.name === name) as TextApi;
}

function words(count: number, random: Random): string {
  return Array.from({ length: count }, () => WORDS[Math.floor(random.next() * WORDS.length)]).join(" ");
}

const WORDS = "keel hull mast sail rope deck helm tide wind port star wave buoy crew gulf reef".split(" ");
