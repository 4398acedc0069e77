import { isJsonObject, type JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { addContent, addPrinted, turn, UNKNOWN } from "./content.ts";

/** Prompt of Anthropic's `/v1/messages`: tools, system, messages. */
export function messagesPrompt(body: JsonObject): PromptPart[] {
  const parts: PromptPart[] = [];
  addPrinted(parts, body.tools);
  addContent(parts, body.system);
  if (Array.isArray(body.messages)) for (const message of body.messages) addMessage(parts, message);
  else parts.push(UNKNOWN);
  return parts;
}

function addMessage(parts: PromptPart[], message: unknown): void {
  if (!isJsonObject(message)) {
    parts.push(UNKNOWN);
    return;
  }
  parts.push(turn(message.role));
  addContent(parts, message.content);
}
