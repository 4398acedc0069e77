import { isJsonObject, type JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { contentParts, jsonParts, turn } from "./content.ts";

/** Prompt of `/v1/chat/completions`: templates put the tools first, then the messages in order. */
export function chatPrompt(body: JsonObject): PromptPart[] {
  return [
    ...jsonParts(body.tools),
    ...jsonParts(body.functions),
    ...jsonParts(body.documents),
    ...messageParts(body.messages),
  ];
}

function messageParts(messages: unknown): PromptPart[] {
  if (!Array.isArray(messages)) return [{ kind: "unknown" }];
  return messages.flatMap((message): PromptPart[] => {
    if (!isJsonObject(message)) return [{ kind: "unknown" }];
    return [
      turn(message.role),
      // The field's new and old names (vLLM); a client that echoes an answer sends one of them.
      ...contentParts(message.reasoning ?? message.reasoning_content),
      ...contentParts(message.content),
      ...contentParts(message.refusal),
      ...jsonParts(message.tool_calls),
      ...jsonParts(message.function_call),
    ];
  });
}
