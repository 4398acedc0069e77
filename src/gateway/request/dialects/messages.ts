import type { JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { addContent, addEach, addPrinted, turn } from "./content.ts";

/** Prompt of Anthropic's `/v1/messages`: tools, system, messages. */
export function messagesPrompt(body: JsonObject): PromptPart[] {
  const parts: PromptPart[] = [];
  addPrinted(parts, body.tools);
  addContent(parts, body.system);
  addEach(parts, body.messages, addMessage);
  return parts;
}

function addMessage(parts: PromptPart[], message: JsonObject): void {
  parts.push(turn(message.role));
  addContent(parts, message.content);
}
