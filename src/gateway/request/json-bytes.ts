/** Where a value lies in the bytes of a JSON text. */
export interface ValueRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Looks up a member of the object that begins at `objectAt`, without parsing it. Of repeated members the last one
 * counts, as it does to JSON.parse. The bytes must be valid JSON.
 * @returns undefined: the object has no such member.
 */
export function findMember(bytes: Buffer, objectAt: number, name: string): ValueRange | undefined {
  let found: ValueRange | undefined;
  let at = skipSpace(bytes, objectAt + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = endOfString(bytes, at);
    const from = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1);
    const to = endOfValue(bytes, from);
    if (isKey(bytes, at, keyEnd, name)) found = { from, to };
    at = skipSpace(bytes, to);
    if (bytes[at] !== COMMA) break;
    at = skipSpace(bytes, at + 1);
  }
  return found;
}

/** Index of the first byte at or after `from` that is no white space, nor a byte-order mark. */
export function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (SPACES.has(bytes[at] ?? 0)) at++;
  return at;
}

/** Index behind the value that begins at `from`. */
export function endOfValue(bytes: Buffer, from: number): number {
  const first = bytes[from];
  if (first === QUOTE) return endOfString(bytes, from);
  let at = from;
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    while (at < bytes.length && !ENDS_OF_SCALAR.has(bytes[at] ?? 0)) at++;
    return at;
  }
  let depth = 0;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
    at++;
    if (depth === 0) break;
  }
  return at;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
/** JSON's white space and the three bytes of a UTF-8 byte-order mark, which can only come first. */
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);
const ENDS_OF_SCALAR: ReadonlySet<number> = new Set([COMMA, CLOSE_BRACE, CLOSE_BRACKET, 0x20, 0x09, 0x0a, 0x0d]);

/** Index behind the closing quote of the string whose opening quote is at `from`. */
function endOfString(bytes: Buffer, from: number): number {
  let at = from + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}

/** A key may be spelled with escapes, so only one without them is compared as it stands. */
function isKey(bytes: Buffer, from: number, to: number, name: string): boolean {
  const spelled = bytes.toString("utf8", from + 1, to - 1);
  return spelled === name || (spelled.includes("\\") && JSON.parse(`"${spelled}"`) === name);
}
