import { z } from "zod";
import type { Exchange } from "../answer.ts";
import { sendJson } from "../exchange.ts";
import { badRequest, Failure } from "../failure.ts";
import { readBody } from "../generation.ts";
import { chatPrompt, message } from "../prompt.ts";
import { countTokensBody, messagesPrompt } from "./messages.ts";

const tokenizeBody = z.looseObject({
  prompt: z.string().optional(),
  messages: z.array(message).optional(),
  tools: z.unknown().optional(),
});

/** `POST /tokenize`: a prompt, or messages under the chat template. */
export function tokenizeText(exchange: Exchange, json: unknown): Failure | undefined {
  const body = readBody(tokenizeBody, json);
  if (body instanceof Failure) return body;
  const { prompt, messages, tools } = body.value;
  if (prompt === undefined && messages === undefined) {
    return badRequest("Either prompt or messages is needed.");
  }
  const parts = messages === undefined ? [{ text: prompt ?? "" }] : chatPrompt(messages, tools);
  const tokens = exchange.engine.tokens(parts);
  sendJson(exchange.response, 200, {
    count: tokens.length,
    max_model_len: exchange.engine.maxModelLen,
    tokens: [...tokens],
  });
  return undefined;
}

/** `POST /v1/messages/count_tokens`. */
export function countTokens(exchange: Exchange, json: unknown): Failure | undefined {
  const body = readBody(countTokensBody, json);
  if (body instanceof Failure) return body;
  sendJson(exchange.response, 200, { input_tokens: exchange.engine.tokens(messagesPrompt(body.value)).length });
  return undefined;
}
