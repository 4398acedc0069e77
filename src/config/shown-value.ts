const MAX_SHOWN = 80;

/** A value as a problem shows it: text quoted and without credentials, anything with parts by its kind only. */
export function shownValue(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (value === null) return "empty";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object") return "a mapping";
  if (typeof value !== "string") return String(value);
  // A key that was written where its file should be named.
  if (value.includes("-----BEGIN ")) return "PEM itself";
  const text = withoutCredentials(value);
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text);
}

/** By position, not by look: what stands before an @ may be a password, what follows a ? a key. */
function withoutCredentials(text: string): string {
  return text.replace(/^(\w+:\/\/)?.*@/s, "$1***@").replace(/\?.*$/s, "?***");
}
