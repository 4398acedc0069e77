import type { JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { addContent, addEach, addPrinted, turn } from "./content.ts";

/** Prompt of `/v1/chat/completions`: templates put the tools first, then the messages in order. */
export function chatPrompt(body: JsonObject): PromptPart[] {
  const parts: PromptPart[] = [];
  addPrinted(parts, body.tools);
  addPrinted(parts, body.functions);
  addPrinted(parts, body.documents);
  addEach(parts, body.messages, addMessage);
  return parts;
}

function addMessage(parts: PromptPart[], message: JsonObject): void {
  parts.push(turn(message.role));
  // The field's new and old names (vLLM); a client that echoes an answer sends one of them.
  addContent(parts, message.reasoning ?? message.reasoning_content);
  addContent(parts, message.content);
  addContent(parts, message.refusal);
  addPrinted(parts, message.tool_calls);
  addPrinted(parts, message.function_call);
}
