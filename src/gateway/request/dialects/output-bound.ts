import type { ReadDialect } from "../../routes.ts";
import type { JsonObject } from "../json-object.ts";
import { promptCount } from "./completions.ts";

/** Fields that bound one choice, the one that counts first. */
const BOUND_FIELDS: Partial<Record<ReadDialect, readonly string[]>> = {
  chat: ["max_completion_tokens", "max_tokens"],
  completions: ["max_tokens"],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};

/** Most tokens the request can generate over all its choices; undefined: it sets no bound that means anything. */
export function maxOutputTokens(dialect: ReadDialect, body: JsonObject): number | undefined {
  for (const field of BOUND_FIELDS[dialect] ?? []) {
    const bound = countIn(body, field, 0);
    if (bound !== undefined) return bound * choiceCount(dialect, body);
  }
  return undefined;
}

function choiceCount(dialect: ReadDialect, body: JsonObject): number {
  if (dialect !== "chat" && dialect !== "completions") return 1;
  const perPrompt = Math.max(countIn(body, "n", 1) ?? 1, countIn(body, "best_of", 1) ?? 1);
  return dialect === "completions" ? perPrompt * promptCount(body) : perPrompt;
}

/** -1 is "no bound" to llama.cpp; fractions and words are the engine's to refuse. */
function countIn(body: JsonObject, field: string, least: number): number | undefined {
  const value = body[field];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least ? value : undefined;
}
