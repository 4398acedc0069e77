import type { IncomingHttpHeaders } from "node:http";
import { isJsonObject, type JsonObject } from "./json-object.ts";

/** Where a session key may be found. */
export type SessionKeySource =
  | { readonly from: "header"; readonly name: string }
  | { readonly from: "body"; readonly path: readonly string[] };

/** A request's session key, or why it has none: no source was sent, or those sent were blank or too long. */
export type SessionKey = { readonly key: string } | { readonly key: undefined; readonly reason: "absent" | "unusable" };

/** Finds the session key of a request. */
export interface SessionKeyReader {
  /** @param body The parsed body; undefined: it was not looked into. */
  read(headers: IncomingHttpHeaders, body: JsonObject | undefined): SessionKey;
}

/**
 * Keys that name one conversation, surest first. Left out on purpose, and open to configuration:
 * `user`, `safety_identifier` and `metadata.user_id` name a person or, sent as a constant, a whole
 * application, which would be drawn to one endpoint; `previous_response_id` differs on every turn.
 */
export const DEFAULT_SESSION_KEY_SOURCES: readonly string[] = [
  "header:x-session-id",
  "header:x-claude-code-session-id",
  "header:session-id",
  "header:session_id",
  "header:x-session-affinity",
  "header:x-smg-routing-key",
  "body:prompt_cache_key",
  "body:conversation",
  "body:conversation.id",
  "header:x-correlation-id",
];

/** Longest key taken, in UTF-16 units: ids have tens of characters, so a longer one is content that strayed in. */
export const MAX_SESSION_KEY_UNITS = 512;

/** @returns the source, or a sentence that says what is wrong with the text. */
export function parseSessionKeySource(text: string): SessionKeySource | string {
  const [from, name] = splitOnce(text, ":");
  if (name === undefined || (from !== "header" && from !== "body")) {
    return `expected "header:NAME" or "body:FIELD.FIELD", got "${text}"`;
  }
  if (from === "header") {
    return HEADER_NAME.test(name) ? { from, name: name.toLowerCase() } : `"${name}" is not a header name`;
  }
  const path = name.split(".");
  return path.includes("") ? `"${name}" is not a path of field names joined by dots` : { from, path };
}

/** @param sources In order of preference. Throws on one that `parseSessionKeySource` finds fault with. */
export function createSessionKeyReader(sources: readonly string[]): SessionKeyReader {
  const parsed = sources.map((text) => {
    const source = parseSessionKeySource(text);
    if (typeof source === "string") throw new Error(`session key source: ${source}`);
    return source;
  });
  return {
    read(headers, body) {
      let wasSent = false;
      for (const source of parsed) {
        const value = source.from === "header" ? headers[source.name] : valueAt(body, source.path);
        const key = keyOf(value);
        if (key === undefined) continue;
        if (key !== "" && key.length <= MAX_SESSION_KEY_UNITS) return { key };
        wasSent = true;
      }
      return { key: undefined, reason: wasSent ? "unusable" : "absent" };
    },
  };
}

/** RFC 9110, 5.6.2: token. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** A number is an id that the client did not quote; any other kind of value is no key. */
function keyOf(value: unknown): string | undefined {
  if (typeof value === "string") return value.trim();
  return typeof value === "number" ? String(value) : undefined;
}

function valueAt(body: JsonObject | undefined, path: readonly string[]): unknown {
  let value: unknown = body;
  for (const field of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, field)) return undefined;
    value = value[field];
  }
  return value;
}
