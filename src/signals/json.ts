/** A JSON object from elsewhere; nothing is known of its members. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Undefined: not JSON, or not an object. */
export function parseJson(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Undefined: not an object. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}
