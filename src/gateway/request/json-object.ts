/** A parsed JSON object of which nothing is known yet. */
export type JsonObject = { readonly [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether another of its members has that name but for its case. */
export function hasRival(object: JsonObject, name: string): boolean {
  return Object.keys(object).some((key) => key.length === name.length && key !== name && key.toLowerCase() === name);
}
