import { z } from "zod";
import { Failure, notFound } from "../failure.ts";
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
  tokenBound,
  type Usage,
} from "../generation.ts";
import { chatPrompt, message } from "../prompt.ts";
import { namedEvent } from "../sse.ts";

const body = z.looseObject({
  ...generationFields,
  input: z.union([z.string(), z.array(message).min(1)]),
  instructions: z.string().nullish(),
  tools: z.unknown().optional(),
  max_output_tokens: tokenBound,
  previous_response_id: z.string().nullish(),
});

/** `POST /v1/responses`. Nothing is stored: a chain on an earlier response is answered with 404. */
export const responses: GenerationApi = {
  read(json) {
    const checked = readBody(body, json);
    if (checked instanceof Failure) return checked;
    const { input, instructions, tools, max_output_tokens, previous_response_id } = checked.value;
    if (typeof previous_response_id === "string") return notFound(`Response ${previous_response_id} is not stored.`);
    const messages = typeof input === "string" ? [{ role: "user", content: input }] : [...input];
    if (typeof instructions === "string") messages.unshift({ role: "system", content: instructions });
    return generationOf({ ...checked.value, n: 1 }, [chatPrompt(messages, tools)], max_output_tokens);
  },
  format: responseFormat,
  failureBody: (failure) => failure.toOpenAi(),
};

function responseFormat(_generation: Generation, { id, model, createdSeconds }: AnswerIdentity): AnswerFormat {
  const itemId = `msg_${id}`;
  let sequenceNumber = 0;
  const event = (type: string, fields: object): string =>
    namedEvent(type, { ...fields, sequence_number: sequenceNumber++ });
  const place = { item_id: itemId, output_index: 0, content_index: 0 };

  const textPart = (text: string): object => ({ type: "output_text", text, annotations: [], logprobs: [] });
  const item = (status: string, content: readonly object[]): object => ({
    id: itemId,
    type: "message",
    role: "assistant",
    status,
    content,
  });
  const response = (status: string, fields: object): object => ({
    id: `resp_${id}`,
    object: "response",
    created_at: createdSeconds,
    model,
    status,
    error: null,
    incomplete_details: null,
    output: [],
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    usage: null,
    ...fields,
  });
  const completed = (usage: Usage, choices: readonly Choice[]): { status: string; body: object } => {
    const isCut = choices.some((choice) => choice.finishReason === "length");
    const status = isCut ? "incomplete" : "completed";
    const body = response(status, {
      incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
      output: choices.map((choice) => item(status, [textPart(textOf(choice))])),
      usage: responseUsage(usage),
    });
    return { status, body };
  };

  return {
    opening: () => [
      event("response.created", { response: response("in_progress", {}) }),
      event("response.in_progress", { response: response("in_progress", {}) }),
    ],
    choiceOpening: () => [
      event("response.output_item.added", { output_index: 0, item: item("in_progress", []) }),
      event("response.content_part.added", { ...place, part: textPart("") }),
    ],
    piece: (_choice, piece) => event("response.output_text.delta", { ...place, delta: piece, logprobs: [] }),
    choiceEnd(choice) {
      const text = textOf(choice);
      const status = choice.finishReason === "length" ? "incomplete" : "completed";
      return [
        event("response.output_text.done", { ...place, text, logprobs: [] }),
        event("response.content_part.done", { ...place, part: textPart(text) }),
        event("response.output_item.done", { output_index: 0, item: item(status, [textPart(text)]) }),
      ];
    },
    ending(usage, choices) {
      const { status, body } = completed(usage, choices);
      return [event(`response.${status}`, { response: body })];
    },
    failure: ({ message, status }) => [event("error", { code: String(status), message, param: null })],
    whole: (usage, choices) => completed(usage, choices).body,
  };
}

function responseUsage(usage: Usage): object {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.promptTokens + usage.outputTokens,
  };
}
