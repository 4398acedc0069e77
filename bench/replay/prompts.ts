import { type Random, seededRandom } from "../../src/core/index.ts";

/** Bytes per token of the built-in engine. */
const TOKEN_BYTES = 4;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Long enough that two prompts which begin at the same place are rare, and those still differ in their first words. */
const POOL_TOKENS = 50_000;

/** Makes up prompts of an exact number of tokens; no two begin alike, so no prefix cache helps. */
export class Prompts {
  readonly #random: Random;
  readonly #pool: string;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#pool = Array.from({ length: POOL_TOKENS }, () => `${this.#letters(TOKEN_BYTES - 1)} `).join("");
  }

  /** A text of `tokens` tokens. */
  next(tokens: number): string {
    const start = TOKEN_BYTES * Math.floor(this.#random.next() * POOL_TOKENS);
    const opening = `${this.#letters(2 * TOKEN_BYTES - 1)} `;
    const rotated = this.#pool.slice(start) + this.#pool.slice(0, start);
    return (opening + rotated).slice(0, TOKEN_BYTES * tokens);
  }

  #letters(count: number): string {
    let text = "";
    for (let i = 0; i < count; i++) text += LETTERS[Math.floor(this.#random.next() * LETTERS.length)];
    return text;
  }
}
