import type { GatewayParts } from "../gateway-parts.ts";
import { type AdminAnswer, json, refusal } from "./admin-answer.ts";
import { type ExplainQuestion, explainRequest } from "./explain.ts";

/** Largest request to explain: what the gateway itself would take at most by default. */
export const MAX_EXPLAIN_BYTES: number = 64 * 1024 * 1024;

/** `POST /admin/explain`. */
export function explain(parts: GatewayParts, _names: readonly string[], body: unknown): AdminAnswer {
  const question = questionOf(body);
  if (typeof question === "string") return refusal(400, question);
  const found = explainRequest(parts, question);
  return typeof found === "string" ? refusal(400, found) : json(200, found);
}

function questionOf(question: unknown): ExplainQuestion | string {
  if (typeof question !== "object" || question === null) return "expected an object: { path, headers, body }";
  const { path = "/v1/chat/completions", headers = {}, body } = question as Record<string, unknown>;
  if (typeof path !== "string") return "path: expected a string";
  if (typeof headers !== "object" || headers === null) return "headers: expected an object";
  if (typeof body !== "object" || body === null) return "body: expected the request's JSON body";
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return { path, headers: Object.fromEntries(named), body: Buffer.from(JSON.stringify(body)) };
}
