import { type Random, seededRandom } from "../../src/core/index.ts";

/** Bytes per token of the built-in engine. */
const TOKEN_BYTES = 4;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Where a prompt may begin; enough places that two which begin at the same one are rare, and those differ in their first words. */
const PLACES = 50_000;
/** The largest context window of the built-in engine. */
const MAX_TOKENS = 131_072;

/** Makes up prompts of an exact number of tokens; no two begin alike, so no prefix cache helps. */
export class Prompts {
  readonly #random: Random;
  readonly #pool: string;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#pool = Array.from({ length: PLACES + MAX_TOKENS }, () => `${this.#letters(TOKEN_BYTES - 1)} `).join("");
  }

  /** A text of `tokens` tokens. */
  next(tokens: number): string {
    const start = TOKEN_BYTES * Math.floor(this.#random.next() * PLACES);
    const opening = `${this.#letters(2 * TOKEN_BYTES - 1)} `;
    const bytes = TOKEN_BYTES * tokens;
    return (opening + this.#pool.slice(start, start + bytes)).slice(0, bytes);
  }

  #letters(count: number): string {
    let text = "";
    for (let i = 0; i < count; i++) text += LETTERS[Math.floor(this.#random.next() * LETTERS.length)];
    return text;
  }
}
