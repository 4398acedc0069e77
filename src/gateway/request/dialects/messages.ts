import { isJsonObject, type JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { contentParts, jsonParts, turn } from "./content.ts";

/** Prompt of Anthropic's `/v1/messages`: tools, system, messages. */
export function messagesPrompt(body: JsonObject): PromptPart[] {
  return [...jsonParts(body.tools), ...contentParts(body.system), ...turnParts(body.messages)];
}

function turnParts(messages: unknown): PromptPart[] {
  if (!Array.isArray(messages)) return [{ kind: "unknown" }];
  return messages.flatMap((message): PromptPart[] =>
    isJsonObject(message) ? [turn(message.role), ...contentParts(message.content)] : [{ kind: "unknown" }],
  );
}
