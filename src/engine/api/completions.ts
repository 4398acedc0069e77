import { z } from "zod";
import { Failure } from "../failure.ts";
import {
  type AnswerFormat,
  type AnswerIdentity,
  type Choice,
  type Generation,
  type GenerationApi,
  generationFields,
  generationOf,
  openAiUsage,
  readBody,
  textOf,
  tokenBound,
} from "../generation.ts";
import { promptShapes, promptsOf } from "../prompt.ts";
import { DONE, dataEvent, pieceTemplate } from "../sse.ts";

/** OpenAI's default bound for this route, which vLLM keeps. */
const DEFAULT_MAX_TOKENS = 16;

const body = z.looseObject({ ...generationFields, prompt: promptShapes, max_tokens: tokenBound });

/** `POST /v1/completions`. */
export const completions: GenerationApi = {
  read(json) {
    const checked = readBody(body, json);
    if (checked instanceof Failure) return checked;
    const { prompt, max_tokens, natural_tokens } = checked.value;
    const defaultTokens = typeof natural_tokens === "number" ? undefined : DEFAULT_MAX_TOKENS;
    return generationOf(checked.value, promptsOf(prompt), max_tokens ?? defaultTokens);
  },
  format: completionFormat,
  failureBody: (failure) => failure.toOpenAi(),
};

function completionFormat(generation: Generation, { id, model, createdSeconds }: AnswerIdentity): AnswerFormat {
  const common = { id: `cmpl-${id}`, object: "text_completion", created: createdSeconds, model };
  const chunk = (choices: readonly unknown[], usage?: unknown): string =>
    dataEvent({ ...common, choices, ...(usage === undefined ? {} : { usage }) });
  const part = (choice: Choice, text: string, finishReason: string | null = null): string =>
    chunk(
      [{ index: choice.index, text, logprobs: null, finish_reason: finishReason }],
      generation.usageInStream === "always" ? openAiUsage(choice.usage) : undefined,
    );
  const templates = new Map<number, (piece: string) => string>();
  return {
    opening: () => [],
    choiceOpening(choice) {
      templates.set(
        choice.index,
        pieceTemplate((text) => part(choice, text)),
      );
      return [];
    },
    piece(choice, text) {
      const template = generation.usageInStream === "always" ? undefined : templates.get(choice.index);
      return template === undefined ? part(choice, text) : template(text);
    },
    choiceEnd: (choice) => [part(choice, "", choice.finishReason)],
    ending: (usage) => (generation.usageInStream === "never" ? [DONE] : [chunk([], openAiUsage(usage)), DONE]),
    failure: (failure) => [dataEvent(failure.toOpenAi()), DONE],
    whole: (usage, choices) => ({
      ...common,
      choices: choices.map((choice) => ({
        index: choice.index,
        text: textOf(choice),
        logprobs: null,
        finish_reason: choice.finishReason,
      })),
      usage: openAiUsage(usage),
    }),
  };
}
