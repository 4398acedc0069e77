import type { JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { addContent, addEach, addPrinted, turn } from "./content.ts";

/** Prompt of `/v1/responses`: tools, instructions, then the input items. */
export function responsesPrompt(body: JsonObject): PromptPart[] {
  const parts: PromptPart[] = [];
  addPrinted(parts, body.tools);
  addContent(parts, body.instructions);
  addInput(parts, body.input);
  return parts;
}

function addInput(parts: PromptPart[], input: unknown): void {
  if (typeof input === "string") parts.push(turn("user"), { kind: "text", text: input });
  else addEach(parts, input, addItem);
}

function addItem(parts: PromptPart[], item: JsonObject): void {
  // A message may leave its type out; its role tells.
  const isMessage = typeof item.role === "string";
  parts.push(turn(isMessage ? item.role : item.type));
  addContent(parts, isMessage ? item.content : item);
}
