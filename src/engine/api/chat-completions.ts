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
import { chatPrompt, message } from "../prompt.ts";
import { DONE, dataEvent, pieceTemplate } from "../sse.ts";

const body = z.looseObject({
  ...generationFields,
  messages: z.array(message).min(1),
  tools: z.unknown().optional(),
  max_tokens: tokenBound,
  max_completion_tokens: tokenBound,
});

/** `POST /v1/chat/completions`. */
export const chatCompletions: GenerationApi = {
  read(json) {
    const checked = readBody(body, json);
    if (checked instanceof Failure) return checked;
    const { messages, tools, max_tokens, max_completion_tokens } = checked.value;
    return generationOf(checked.value, [chatPrompt(messages, tools)], max_completion_tokens ?? max_tokens);
  },
  format: chatFormat,
  failureBody: (failure) => failure.toOpenAi(),
};

function chatFormat(generation: Generation, { id, model, createdSeconds }: AnswerIdentity): AnswerFormat {
  const common = { id: `chatcmpl-${id}`, created: createdSeconds, model };
  const chunk = (choices: readonly unknown[], usage?: unknown): string =>
    dataEvent({ ...common, object: "chat.completion.chunk", choices, ...(usage === undefined ? {} : { usage }) });
  const delta = (choice: Choice, content: unknown, finishReason: string | null = null): string =>
    chunk(
      [{ index: choice.index, delta: content, logprobs: null, finish_reason: finishReason }],
      generation.usageInStream === "always" ? openAiUsage(choice.usage) : undefined,
    );
  const templates = new Map<number, (piece: string) => string>();
  return {
    opening: () => [],
    choiceOpening(choice) {
      templates.set(
        choice.index,
        pieceTemplate((content) => delta(choice, { content })),
      );
      return [delta(choice, { role: "assistant", content: "" })];
    },
    piece(choice, content) {
      const template = generation.usageInStream === "always" ? undefined : templates.get(choice.index);
      return template === undefined ? delta(choice, { content }) : template(content);
    },
    choiceEnd: (choice) => [delta(choice, {}, choice.finishReason)],
    ending: (usage) => (generation.usageInStream === "never" ? [DONE] : [chunk([], openAiUsage(usage)), DONE]),
    failure: (failure) => [dataEvent(failure.toOpenAi()), DONE],
    whole: (usage, choices) => ({
      ...common,
      object: "chat.completion",
      choices: choices.map((choice) => ({
        index: choice.index,
        message: { role: "assistant", content: textOf(choice), refusal: null },
        logprobs: null,
        finish_reason: choice.finishReason,
      })),
      usage: openAiUsage(usage),
    }),
  };
}
