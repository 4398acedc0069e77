/**
 * Whether the data of a chat or completions event holds generated text and nothing else that matters: no usage, no
 * error, no finish reason. This runs once per token, so it reads the bytes in one pass instead of parsing them; a
 * "no" only means that the event has to be parsed. Text cannot pass for a key: its quotes come with a backslash, which
 * stands where a key's closing quote is looked for.
 */
export function holdsOnlyTokens(bytes: Buffer, start: number, end: number): boolean {
  let hasText = false;
  for (let i = start; i < end; i++) {
    if (bytes[i] !== QUOTE) continue;
    const key = keyAt(bytes, i);
    if (key === undefined) continue;
    const value = startOfValue(bytes, i + key.length, end);
    if (value === -1) continue;
    if (TEXT_KEYS.has(key)) hasText ||= bytes[value] === QUOTE && bytes[value + 1] !== QUOTE;
    else if (!isNullOrEmpty(bytes, value)) return false;
    i = value - 1;
  }
  return hasText;
}

const QUOTE = 0x22;
const COLON = 0x3a;
const SPACE = 0x20;

const quoted = (name: string): Buffer => Buffer.from(`"${name}"`);

const TEXT = ["content", "text", "reasoning", "reasoning_content", "arguments"].map(quoted);
/** Anything but null or "" under these has to be looked at closely. */
const SERIOUS = ["usage", "error", "finish_reason"].map(quoted);
const TEXT_KEYS: ReadonlySet<Buffer> = new Set(TEXT);

/** Keys by their first letter, longer ones first where one begins another. */
const KEYS_BY_LETTER: readonly (readonly Buffer[] | undefined)[] = lettersOf([...TEXT, ...SERIOUS]);

function lettersOf(keys: readonly Buffer[]): (Buffer[] | undefined)[] {
  const table: (Buffer[] | undefined)[] = new Array(256).fill(undefined);
  for (const key of keys) {
    const letter = key[1] ?? 0;
    table[letter] = [...(table[letter] ?? []), key];
  }
  return table;
}

function keyAt(bytes: Buffer, at: number): Buffer | undefined {
  const keys = KEYS_BY_LETTER[bytes[at + 1] ?? 0];
  if (keys === undefined) return undefined;
  for (const key of keys) if (startsWith(bytes, at, key)) return key;
  return undefined;
}

function startsWith(bytes: Buffer, at: number, key: Buffer): boolean {
  // Closing quote first: it settles most comparisons.
  for (let i = key.length - 1; i > 0; i--) if (bytes[at + i] !== key[i]) return false;
  return true;
}

/** Index of the value behind a key, -1: what looked like a key is a value. */
function startOfValue(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (bytes[at] === SPACE) at++;
  if (bytes[at] !== COLON) return -1;
  at++;
  while (bytes[at] === SPACE) at++;
  return at < end ? at : -1;
}

function isNullOrEmpty(bytes: Buffer, at: number): boolean {
  // No other JSON value begins with an n.
  return bytes[at] === 0x6e || (bytes[at] === QUOTE && bytes[at + 1] === QUOTE);
}
