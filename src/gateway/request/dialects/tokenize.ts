import type { JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { chatPrompt } from "./chat.ts";
import { contentParts, UNKNOWN } from "./content.ts";

/** Prompt of `/tokenize`: `prompt` or messages (vLLM), `content` (llama.cpp). */
export function tokenizePrompt(body: JsonObject): PromptPart[] {
  if (body.messages !== undefined) return chatPrompt(body);
  const text = body.prompt ?? body.content;
  return text === undefined ? [UNKNOWN] : contentParts(text);
}
