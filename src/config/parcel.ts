import { Secret } from "./secret.ts";

/**
 * Settings as they go to another process of this program, which structured cloning carries: a secret stands open in
 * them. They go over a channel that nobody else reads, and are neither logged nor kept.
 */
export interface Parcel<Value> {
  readonly packed: unknown;
  /** What was packed; never there. */
  readonly of?: Value;
}

export function pack<Value>(value: Value): Parcel<Value> {
  return { packed: packed(value) };
}

export function unpack<Value>({ packed }: Parcel<Value>): Value {
  return unpacked(packed) as Value;
}

/** The key that stands for a secret; no setting has it. */
const SECRET = "\0secret";

function packed(value: unknown): unknown {
  return value instanceof Secret ? { [SECRET]: value.reveal() } : eachPart(value, packed);
}

function unpacked(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (typeof value === "object" && value !== null && SECRET in value) return new Secret(String(value[SECRET]));
  return eachPart(value, unpacked);
}

/** The same value with each of its parts as `change` has it; what has no parts stays. */
function eachPart(value: unknown, change: (part: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(change);
  if (value instanceof Set) return new Set([...value].map(change));
  if (value instanceof Map) return new Map([...value].map(([key, part]) => [key, change(part)]));
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, change(part)]));
}
