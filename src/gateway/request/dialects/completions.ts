import type { JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";

/** Prompt of `/v1/completions`. */
export function completionsPrompt(body: JsonObject): PromptPart[] {
  return [...promptParts(body.prompt), ...(typeof body.suffix === "string" ? promptParts(body.suffix) : [])];
}

/** How many prompts the body holds; each is generated from on its own. */
export function promptCount(body: JsonObject): number {
  const prompt = body.prompt;
  if (isTokenIds(prompt) || !Array.isArray(prompt)) return 1;
  return prompt.length;
}

/** The four shapes of a prompt: text, texts, token ids, lists of token ids. */
export function promptParts(prompt: unknown): PromptPart[] {
  if (typeof prompt === "string") return [{ kind: "text", text: prompt }];
  if (isTokenIds(prompt)) return [{ kind: "tokens", ids: prompt }];
  if (!Array.isArray(prompt)) return [{ kind: "unknown" }];
  return prompt.flatMap((item): PromptPart[] => {
    if (typeof item === "string") return [{ kind: "text", text: item }];
    return isTokenIds(item) ? [{ kind: "tokens", ids: item }] : [{ kind: "unknown" }];
  });
}

function isTokenIds(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => typeof item === "number");
}
