import { isJsonObject, type JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { contentParts, jsonParts, turn } from "./content.ts";

/** Prompt of `/v1/responses`: tools, instructions, then the input items. */
export function responsesPrompt(body: JsonObject): PromptPart[] {
  return [...jsonParts(body.tools), ...contentParts(body.instructions), ...inputParts(body.input)];
}

function inputParts(input: unknown): PromptPart[] {
  if (typeof input === "string") return [turn("user"), ...contentParts(input)];
  if (!Array.isArray(input)) return [{ kind: "unknown" }];
  return input.flatMap((item): PromptPart[] => {
    if (!isJsonObject(item)) return [{ kind: "unknown" }];
    // A message may leave its type out; its role tells.
    if (typeof item.role === "string") {
      return [turn(item.role), ...contentParts(item.content)];
    }
    return [turn(item.type), ...contentParts(item)];
  });
}
