import fc from "fast-check";

/** Steps from 0 to 1. */
const SHARES = 10_000;

/** A change of a text. */
interface Edit {
  /** Where, as a share of its length. */
  readonly at: number;
  /** How much goes there. */
  readonly removed: number;
  readonly added: string;
}

/** A text with a few changes; characters above 0xff do not come of texts without any, so that bytes stay bytes. */
export interface Edited {
  readonly text: string;
  readonly edits: readonly Edit[];
}

/** From 0 to 1, evenly: of numbers as such most lie next to 0. */
export const anyShare: fc.Arbitrary<number> = fc.noBias(fc.nat({ max: SHARES })).map((share) => share / SHARES);

/**
 * One of `texts` with up to `most` changes, often none or one. What is put in is a word of `words`, a few random bytes
 * or a long run of one of them.
 */
export function editedText(texts: readonly string[], words: readonly string[], most: number = 4): fc.Arbitrary<Edited> {
  const byte = fc.nat({ max: 255 }).map((code) => String.fromCharCode(code));
  const added = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("", ...words) },
    { weight: 2, arbitrary: fc.array(byte, { maxLength: 6 }).map((bytes) => bytes.join("")) },
    { weight: 1, arbitrary: fc.tuple(byte, fc.nat({ max: 3000 })).map(([one, count]) => one.repeat(count)) },
  );
  const removed = fc.oneof(
    { weight: 5, arbitrary: fc.nat({ max: 3 }) },
    { weight: 1, arbitrary: fc.nat({ max: 200 }) },
  );
  const edit = fc.record({ at: anyShare, removed, added });
  return fc.record({ text: fc.constantFrom(...texts), edits: fc.array(edit, { maxLength: most }) });
}

/** The text with its changes made, one after the other. */
export function applied({ text, edits }: Edited): string {
  return edits.reduce((current, { at, removed, added }) => {
    const from = Math.floor(at * current.length);
    return current.slice(0, from) + added + current.slice(from + removed);
  }, text);
}

/** Where a text is cut into pieces, as shares of its length. */
export const anyCuts: fc.Arbitrary<number[]> = fc.array(anyShare, { maxLength: 6 });

/** The pieces, in order; some may be empty. */
export function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b);
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length));
}
