import type { Prefix } from "../../core/index.ts";
import type { ReadDialect } from "../routes.ts";
import { chatPrompt } from "./dialects/chat.ts";
import { completionsPrompt } from "./dialects/completions.ts";
import { messagesPrompt } from "./dialects/messages.ts";
import { maxOutputTokens } from "./dialects/output-bound.ts";
import { embeddingsPrompt, rerankPrompt, scorePrompt } from "./dialects/pooling.ts";
import { responsesPrompt } from "./dialects/responses.ts";
import { tokenizePrompt } from "./dialects/tokenize.ts";
import { describeJsonError } from "./json-error.ts";
import { isJsonObject, type JsonObject } from "./json-object.ts";
import type { PromptPart } from "./prompt-part.ts";
import { hashPrompt } from "./prompt-prefix.ts";
import { measurePrompt, type PromptSize } from "./prompt-size.ts";

/**
 * Whether the client wants `usage` at the end of its stream. `declined` also stands for a client that set
 * `continuous_usage_stats` alone: asking on its behalf would put usage on every event it gets.
 */
export type UsageWish = "asked" | "declined" | "unspecified";

/** What a body says that matters for balancing. */
export interface RequestFacts {
  readonly isReadable: true;
  /** As the client wrote it; undefined: absent or not a string. */
  readonly model: string | undefined;
  /** True only if `stream` is literally true. */
  readonly isStreaming: boolean;
  readonly prompt: PromptSize;
  /** Bound on generated tokens over all choices; undefined: the client set none. */
  readonly maxOutputTokens: number | undefined;
  readonly usageWish: UsageWish;
  /** The parsed body, for session keys and edits. */
  readonly body: JsonObject;
  /**
   * Hashes the prompt. Costs time linear in its length, so only what needs it calls it.
   * @param servedModel The model's name at the endpoint; absent: as the client wrote it.
   * @returns undefined when the prompt is shorter than a block or its route keeps no prefix cache.
   */
  hashPrefix(promptTokens: number, servedModel?: string): Prefix | undefined;
}

/** A body that cannot be read. */
export interface BodyProblem {
  readonly isReadable: false;
  /** For the client: what is wrong and where, without quoting the body. */
  readonly message: string;
}

/** Reads a request body once. Shapes it does not know make the prompt's size unknown; only bad JSON is a problem. */
export function readRequest(dialect: ReadDialect, bytes: Buffer): RequestFacts | BodyProblem {
  const body = parseBody(bytes);
  if (typeof body === "string") return { isReadable: false, message: body };
  const parts = PROMPT_READERS[dialect](body);
  const model = stringIn(body, "model");
  return {
    isReadable: true,
    model,
    isStreaming: body.stream === true,
    prompt: measurePrompt(parts, bytes.length),
    maxOutputTokens: maxOutputTokens(dialect, body),
    usageWish: usageWish(body.stream_options),
    body,
    hashPrefix: (promptTokens, servedModel = model) =>
      KEEPS_PREFIX_CACHE[dialect]
        ? hashPrompt(parts, [servedModel, adapterOf(body), stringIn(body, "cache_salt")], promptTokens)
        : undefined,
  };
}

const PROMPT_READERS: Readonly<Record<ReadDialect, (body: JsonObject) => PromptPart[]>> = {
  chat: chatPrompt,
  completions: completionsPrompt,
  responses: responsesPrompt,
  messages: messagesPrompt,
  embeddings: embeddingsPrompt,
  rerank: rerankPrompt,
  score: scorePrompt,
  tokenize: tokenizePrompt,
};

/** Embedding and scoring models read their input in one pass, and seldom through a cache worth aiming at. */
const KEEPS_PREFIX_CACHE: Readonly<Record<ReadDialect, boolean>> = {
  chat: true,
  completions: true,
  responses: true,
  messages: true,
  embeddings: false,
  rerank: false,
  score: false,
  tokenize: false,
};

/** The body, or what is wrong with it. */
function parseBody(bytes: Buffer): JsonObject | string {
  const decoded = bytes.toString("utf8");
  // Python's JSON reader, and so most engines, takes a byte-order mark; JSON.parse does not.
  const text = decoded.charCodeAt(0) === 0xfeff ? decoded.slice(1) : decoded;
  try {
    const body: unknown = JSON.parse(text);
    return isJsonObject(body) ? body : `The body must be a JSON object, not ${nameOf(body)}.`;
  } catch {
    return describeJsonError(text);
  }
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}

function usageWish(streamOptions: unknown): UsageWish {
  if (!isJsonObject(streamOptions)) return "unspecified";
  if (streamOptions.include_usage === true) return "asked";
  if (streamOptions.include_usage === false || streamOptions.continuous_usage_stats === true) return "declined";
  return "unspecified";
}

/** LoRA adapter, where an engine takes it beside the model's name: SGLang's and TGI's fields. */
function adapterOf(body: JsonObject): string | undefined {
  return stringIn(body, "lora_path") ?? stringIn(body, "adapter_id");
}

function stringIn(body: JsonObject, field: string): string | undefined {
  const value = body[field];
  return typeof value === "string" ? value : undefined;
}
