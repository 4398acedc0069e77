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
  readBody,
  textOf,
  type Usage,
} from "../generation.ts";
import { chatPrompt, message } from "../prompt.ts";
import { namedEvent, pieceTemplate } from "../sse.ts";
import type { PromptPart } from "../tokens.ts";

const promptFields = {
  system: z.unknown().optional(),
  tools: z.unknown().optional(),
  messages: z.array(message).min(1),
};

const body = z.looseObject({ ...generationFields, ...promptFields, max_tokens: z.int().min(1) });

/** The body of `POST /v1/messages/count_tokens`. */
export const countTokensBody: z.ZodType<MessagesPrompt> = z.looseObject(promptFields);

export interface MessagesPrompt {
  readonly system?: unknown;
  readonly tools?: unknown;
  readonly messages: readonly z.infer<typeof message>[];
}

/** Anthropic's prompt is that of the other chat routes, with the system message in a field of its own. */
export function messagesPrompt({ system, messages, tools }: MessagesPrompt): PromptPart[] {
  const isPresent = system !== undefined && system !== null;
  return chatPrompt(isPresent ? [{ role: "system", content: system }, ...messages] : messages, tools);
}

/** `POST /v1/messages`: Anthropic's API. */
export const messages: GenerationApi = {
  read(json) {
    const checked = readBody(body, json);
    if (checked instanceof Failure) return checked;
    return generationOf({ ...checked.value, n: 1 }, [messagesPrompt(checked.value)], checked.value.max_tokens);
  },
  format: messagesFormat,
  failureBody: (failure) => failure.toAnthropic(),
};

function messagesFormat(_generation: Generation, { id, model }: AnswerIdentity): AnswerFormat {
  const common = { id: `msg_${id}`, type: "message", role: "assistant", model };
  const delta = pieceTemplate((text) =>
    namedEvent("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  );
  return {
    opening: () => [],
    choiceOpening: ({ usage }) => [
      namedEvent("message_start", {
        message: { ...common, content: [], stop_reason: null, stop_sequence: null, usage: anthropicUsage(usage) },
      }),
      namedEvent("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ],
    piece: (_choice, text) => delta(text),
    choiceEnd: (choice) => [
      namedEvent("content_block_stop", { index: 0 }),
      namedEvent("message_delta", {
        delta: { stop_reason: stopReason(choice), stop_sequence: null },
        usage: anthropicUsage(choice.usage),
      }),
    ],
    ending: () => [namedEvent("message_stop", {})],
    failure: (failure) => [namedEvent("error", failure.toAnthropic())],
    whole: (usage, choices) => ({
      ...common,
      content: choices.map((choice) => ({ type: "text", text: textOf(choice) })),
      stop_reason: choices.map(stopReason)[0],
      stop_sequence: null,
      usage: anthropicUsage(usage),
    }),
  };
}

function stopReason(choice: Choice): string {
  return choice.finishReason === "length" ? "max_tokens" : "end_turn";
}

/** Anthropic counts cached tokens beside `input_tokens`, not within. */
function anthropicUsage(usage: Usage): object {
  return {
    input_tokens: usage.promptTokens - usage.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.outputTokens,
  };
}
