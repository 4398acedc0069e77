import { isJsonObject, type JsonObject } from "../request/json-object.ts";
import type { ReadDialect } from "../routes.ts";

/** Token counts as an engine reported them; undefined: it did not say. */
export interface Usage {
  /** The whole prompt, cached part included, in every dialect. */
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  /** The part of the prompt that came from the prefix cache. */
  readonly cachedTokens: number | undefined;
}

/** Reads a `usage` object; undefined: it holds no count, or only zeros, which Ollama sends before it has counted. */
export function readUsage(dialect: ReadDialect, value: unknown): Usage | undefined {
  if (!isJsonObject(value)) return undefined;
  const usage = USAGE_READERS[dialect](value);
  return usage.promptTokens || usage.completionTokens ? usage : undefined;
}

function chatUsage(usage: JsonObject): Usage {
  const completionTokens = countIn(usage, "completion_tokens");
  // Rerankers may give the total alone.
  const rest = (countIn(usage, "total_tokens") ?? Number.NaN) - (completionTokens ?? 0);
  return {
    promptTokens: countIn(usage, "prompt_tokens") ?? (rest >= 0 ? rest : undefined),
    completionTokens,
    cachedTokens: countIn(usage.prompt_tokens_details, "cached_tokens"),
  };
}

function responsesUsage(usage: JsonObject): Usage {
  return {
    promptTokens: countIn(usage, "input_tokens"),
    completionTokens: countIn(usage, "output_tokens"),
    cachedTokens: countIn(usage.input_tokens_details, "cached_tokens"),
  };
}

/** Here, unlike elsewhere, cached tokens are not inside `input_tokens`. */
function messagesUsage(usage: JsonObject): Usage {
  const input = countIn(usage, "input_tokens");
  const read = countIn(usage, "cache_read_input_tokens");
  const written = countIn(usage, "cache_creation_input_tokens");
  return {
    promptTokens: input === undefined ? undefined : input + (read ?? 0) + (written ?? 0),
    completionTokens: countIn(usage, "output_tokens"),
    cachedTokens: read,
  };
}

const USAGE_READERS: Readonly<Record<ReadDialect, (usage: JsonObject) => Usage>> = {
  chat: chatUsage,
  completions: chatUsage,
  responses: responsesUsage,
  messages: messagesUsage,
  embeddings: chatUsage,
  rerank: chatUsage,
  score: chatUsage,
  tokenize: chatUsage,
};

/** No engine holds so many in all its memory: what says more is no count, and would be learned from. */
const MAX_TOKENS = 100_000_000;

function countIn(object: unknown, field: string): number | undefined {
  const value = isJsonObject(object) ? object[field] : undefined;
  const isCount = typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS;
  return isCount ? value : undefined;
}
