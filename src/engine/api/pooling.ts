import { z } from "zod";
import type { Exchange } from "../answer.ts";
import { servePrefill } from "../answer.ts";
import { badRequest, Failure } from "../failure.ts";
import { readBody, type Usage } from "../generation.ts";
import { promptShapes, promptsOf } from "../prompt.ts";
import { digest, tokenize } from "../tokens.ts";

const DEFAULT_DIMENSIONS = 64;

const embeddingsBody = z.looseObject({
  input: promptShapes,
  dimensions: z.int().min(1).max(4096).nullish(),
  encoding_format: z.enum(["float", "base64"]).nullish(),
});

/** `POST /v1/embeddings`: one vector per input, a fixed function of its tokens. */
export function embeddings(exchange: Exchange, json: unknown): Failure | undefined {
  const body = readBody(embeddingsBody, json);
  if (body instanceof Failure) return body;
  const { input, dimensions, encoding_format } = body.value;
  const prompts = promptsOf(input).map((prompt) => exchange.engine.tokens(prompt));
  return servePrefill(exchange, prompts, (usage) => ({
    id: `embd-${exchange.id}`,
    object: "list",
    created: Math.floor(Date.now() / 1000),
    model: exchange.engine.model,
    data: prompts.map((tokens, index) => {
      const vector = unitVector(tokens, dimensions ?? DEFAULT_DIMENSIONS);
      const embedding = encoding_format === "base64" ? Buffer.from(vector.buffer).toString("base64") : [...vector];
      return { index, object: "embedding", embedding };
    }),
    usage: promptUsage(usage),
  }));
}

const rerankBody = z.looseObject({
  query: z.string(),
  documents: z.array(z.string()).min(1),
  top_n: z.int().min(0).nullish(),
});

/** `POST /v1/rerank`: documents by falling relevance; `top_n` of 0 or none keeps all. */
export function rerank(exchange: Exchange, json: unknown): Failure | undefined {
  const body = readBody(rerankBody, json);
  if (body instanceof Failure) return body;
  const { query, documents, top_n } = body.value;
  const prompts = documents.map((document) => pairTokens(query, document));
  return servePrefill(exchange, prompts, (usage) => {
    const results = documents
      .map((text, index) => ({ index, document: { text }, relevance_score: scoreOf(prompts[index]) }))
      .sort((a, b) => b.relevance_score - a.relevance_score);
    return {
      id: `rerank-${exchange.id}`,
      model: exchange.engine.model,
      usage: { prompt_tokens: usage.promptTokens, total_tokens: usage.promptTokens },
      results: results.slice(0, top_n || results.length),
    };
  });
}

const texts = z.union([z.string().transform((text) => [text]), z.array(z.string()).min(1)]);
const scoreBody = z.looseObject({ text_1: texts, text_2: texts });

/** `POST /v1/score`: one text against many, or two lists pair by pair. */
export function score(exchange: Exchange, json: unknown): Failure | undefined {
  const body = readBody(scoreBody, json);
  if (body instanceof Failure) return body;
  const { text_1: left, text_2: right } = body.value;
  if (left.length !== 1 && left.length !== right.length) {
    return badRequest("text_1 must be one text, or as many as text_2.");
  }
  const prompts = right.map((text, index) => pairTokens(left[left.length === 1 ? 0 : index] ?? "", text));
  return servePrefill(exchange, prompts, (usage) => ({
    id: `score-${exchange.id}`,
    object: "list",
    created: Math.floor(Date.now() / 1000),
    model: exchange.engine.model,
    data: prompts.map((tokens, index) => ({ index, object: "score", score: scoreOf(tokens) })),
    usage: promptUsage(usage),
  }));
}

function pairTokens(first: string, second: string): Uint32Array {
  return tokenize([{ text: first }, { text: "<|and|>" }, { text: second }]);
}

/** From 0 up to 1, a fixed function of the pair. */
function scoreOf(tokens: Uint32Array = new Uint32Array()): number {
  return digest(tokens) / 2 ** 32;
}

function unitVector(tokens: Uint32Array, dimensions: number): Float32Array {
  const id = digest(tokens);
  const vector = Float32Array.from({ length: dimensions }, (_, axis) => digest(Uint32Array.of(id, axis)) / 2 ** 31 - 1);
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

function promptUsage(usage: Usage): object {
  return {
    prompt_tokens: usage.promptTokens,
    total_tokens: usage.promptTokens,
    completion_tokens: 0,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}
