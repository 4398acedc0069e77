import { isJsonObject, type JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";
import { chatPrompt } from "./chat.ts";
import { promptParts } from "./completions.ts";
import { contentParts } from "./content.ts";

/** Prompt of `/v1/embeddings`: any of the four prompt shapes, or messages (vLLM, for images). */
export function embeddingsPrompt(body: JsonObject): PromptPart[] {
  return body.messages === undefined ? promptParts(body.input) : chatPrompt(body);
}

/** Prompt of `/v1/rerank`: the query is read once with every document. */
export function rerankPrompt(body: JsonObject): PromptPart[] {
  return pairParts(body.query, body.documents);
}

/** Prompt of `/v1/score`: two texts, one against many, or two lists paired off; the fields have an old and a new name. */
export function scorePrompt(body: JsonObject): PromptPart[] {
  return pairParts(body.text_1 ?? body.queries ?? body.query, body.text_2 ?? body.documents ?? body.items);
}

function pairParts(left: unknown, right: unknown): PromptPart[] {
  if (left === undefined || right === undefined) return [{ kind: "unknown" }];
  const copies = Array.isArray(right) && !(Array.isArray(left) && left.length > 1) ? right.length : 1;
  const repeated = sideParts(left).map(
    (part): PromptPart => (part.kind === "text" || part.kind === "media" ? { ...part, copies } : part),
  );
  return [...repeated, ...sideParts(right)];
}

/** A multimodal side wraps its blocks in `content`. */
function sideParts(side: unknown): PromptPart[] {
  return contentParts(isJsonObject(side) && "content" in side ? side.content : side);
}
