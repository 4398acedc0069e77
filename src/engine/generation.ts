import { z } from "zod";
import { badRequest, type Failure } from "./failure.ts";
import type { Prompt } from "./prompt.ts";
import type { OutputBounds, OutputPlan, Reply } from "./reply.ts";

/** What every generating route boils down to. */
export interface Generation extends OutputBounds {
  readonly prompts: readonly Prompt[];
  readonly choicesPerPrompt: number;
  readonly isStreaming: boolean;
  readonly usageInStream: "never" | "last" | "always";
  readonly hasStreamOptions: boolean;
  /** Separates prefix caches; undefined: the common one. */
  readonly cacheSalt: string | undefined;
  /** The client's own seed; 0 where it gave none. */
  readonly seed: number;
}

export interface Usage {
  readonly promptTokens: number;
  /** Part of `promptTokens` that was found in the prefix cache. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

/** One output of a request, as far as it has come. */
export interface Choice {
  readonly index: number;
  readonly reply: Reply;
  readonly finishReason: OutputPlan["finishReason"];
  /** What it used so far. */
  readonly usage: Usage;
}

/** How one API writes its answers. Every string is one server-sent event, complete with its blank line. */
export interface AnswerFormat {
  /** Sent at once, before anything was computed. */
  opening(): readonly string[];
  /** Sent when the first token of a choice is there. */
  choiceOpening(choice: Choice): readonly string[];
  /** The event of one token. */
  piece(choice: Choice, piece: string): string;
  choiceEnd(choice: Choice): readonly string[];
  /** Sent when every choice has ended. */
  ending(usage: Usage, choices: readonly Choice[]): readonly string[];
  /** Sent in place of everything that would still follow. */
  failure(failure: Failure): readonly string[];
  /** The answer in one piece. */
  whole(usage: Usage, choices: readonly Choice[]): object;
}

/** What an answer says of itself. */
export interface AnswerIdentity {
  /** Unique part of its id. */
  readonly id: string;
  readonly model: string;
  readonly createdSeconds: number;
}

/** One generating API: how it reads requests and how it writes answers. */
export interface GenerationApi {
  read(body: unknown): Generation | Failure;
  format(generation: Generation, identity: AnswerIdentity): AnswerFormat;
  failureBody(failure: Failure): object;
}

/** Body fields that all generating routes share. */
export const generationFields: {
  stream: z.ZodType<boolean | null | undefined>;
  n: z.ZodType<number | null | undefined>;
  seed: z.ZodType<number | null | undefined>;
  min_tokens: z.ZodType<number | null | undefined>;
  ignore_eos: z.ZodType<boolean | null | undefined>;
  natural_tokens: z.ZodType<number | null | undefined>;
  cache_salt: z.ZodType<string | null | undefined>;
  stream_options: z.ZodType<StreamOptions | null | undefined>;
} = {
  stream: z.boolean().nullish(),
  n: z.int().min(1).max(128).nullish(),
  seed: z.int().nullish(),
  min_tokens: z.int().min(0).nullish(),
  ignore_eos: z.boolean().nullish(),
  natural_tokens: z.int().min(1).nullish(),
  cache_salt: z.string().min(1).nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().nullish(), continuous_usage_stats: z.boolean().nullish() })
    .nullish(),
};

/** A bound on the output. */
export const tokenBound: z.ZodType<number | null | undefined> = z.int().min(1).nullish();

interface StreamOptions {
  readonly include_usage?: boolean | null | undefined;
  readonly continuous_usage_stats?: boolean | null | undefined;
}

type CommonBody = { readonly [Name in keyof typeof generationFields]?: z.infer<(typeof generationFields)[Name]> };

/** The generation a checked body asks for. */
export function generationOf(
  body: CommonBody,
  prompts: readonly Prompt[],
  maxTokens: number | null | undefined,
): Generation | Failure {
  const isStreaming = body.stream ?? false;
  const options = body.stream_options ?? undefined;
  if (options !== undefined && !isStreaming) return badRequest("Stream options are only allowed with stream=true.");
  const usageInStream = !options?.include_usage ? "never" : options.continuous_usage_stats ? "always" : "last";
  return {
    prompts,
    choicesPerPrompt: body.n ?? 1,
    isStreaming,
    usageInStream,
    hasStreamOptions: options !== undefined,
    maxTokens: maxTokens ?? undefined,
    minTokens: body.min_tokens ?? 0,
    ignoreEos: body.ignore_eos ?? false,
    naturalTokens: body.natural_tokens ?? undefined,
    cacheSalt: body.cache_salt ?? undefined,
    seed: body.seed ?? 0,
  };
}

/** Checks a body; every problem is named with its path. */
export function readBody<Body>(schema: z.ZodType<Body>, body: unknown): { readonly value: Body } | Failure {
  const result = schema.safeParse(body);
  if (result.success) return { value: result.data };
  return badRequest(
    result.error.issues
      .map(({ path, message }) => `${path.length > 0 ? path.join(".") : "body"}: ${message}`)
      .join("; "),
  );
}

/** Usage as OpenAI reports it. `cached_tokens` is always there, as with vLLM's `--enable-prompt-tokens-details`. */
export function openAiUsage(usage: Usage): object {
  return {
    prompt_tokens: usage.promptTokens,
    total_tokens: usage.promptTokens + usage.outputTokens,
    completion_tokens: usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}

/** The text generated so far. */
export function textOf(choice: Choice): string {
  return choice.reply.pieces.slice(0, choice.usage.outputTokens).join("");
}
