import { Secret } from "../config/index.ts";

/**
 * Whether two settings say the same. Secrets are compared by what they hide, which no general comparison sees; a
 * setting that is undefined is like one that is absent.
 */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Secret || b instanceof Secret) {
    return a instanceof Secret && b instanceof Secret && a.reveal() === b.reveal();
  }
  if (a instanceof Map || b instanceof Map) {
    return a instanceof Map && b instanceof Map && isSameValue([...a], [...b]);
  }
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isSameValue(Reflect.get(a, key), Reflect.get(b, key)));
}

/** Which of the settings `names` differ. */
export function differing<Name extends string>(
  names: readonly Name[],
  a: Readonly<Record<Name, unknown>>,
  b: Readonly<Record<Name, unknown>>,
): readonly Name[] {
  return names.filter((name) => !isSameValue(a[name], b[name]));
}
