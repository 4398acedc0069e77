import { type Random, seededRandom } from "../../src/core/index.ts";
import type { WorkloadRequest } from "../../src/sim/index.ts";

/** Bytes per token of the built-in engine. */
const TOKEN_BYTES = 4;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Bytes of a text's opening, which tells it from all others. */
const OPENING_BYTES = 4 * TOKEN_BYTES;
/** Texts go on at one of so many places of one long text: words alone, so that they compress no better than prose. */
const PLACES = 50_000;
/** The largest context window of the built-in engine. */
const MAX_TOKENS = 131_072;

/**
 * Makes up the prompts of a workload: exactly as many tokens as it says, equal where its blocks are equal and nowhere
 * else. What follows the last full block is new text each time.
 */
export class WorkloadPrompts {
  readonly #blockBytes: number;
  readonly #source: string;
  #written = 0;

  /** @param blockTokens Tokens per block of the workload. */
  constructor(blockTokens: number, seed: number) {
    this.#blockBytes = TOKEN_BYTES * blockTokens;
    const random = seededRandom(seed);
    this.#source = Array.from({ length: PLACES + MAX_TOKENS }, () => word(random)).join("");
  }

  /** The prompt of a request, in ASCII; of one token at least. */
  text({ promptTokens, blockIds }: WorkloadRequest): string {
    const bytes = TOKEN_BYTES * Math.max(1, promptTokens);
    const blocks = blockIds.slice(0, Math.floor(bytes / this.#blockBytes));
    const shared = blocks.map((id) => this.#piece(`b${id}`, this.#blockBytes, id));
    const own = this.#written++;
    return shared.join("") + this.#piece(`r${own}`, bytes - shared.length * this.#blockBytes, own);
  }

  #piece(name: string, bytes: number, number: number): string {
    // Numbers that follow one another are not to lie next to one another.
    const start = TOKEN_BYTES * ((number * 7_919) % PLACES);
    return (name.padEnd(OPENING_BYTES) + this.#source.slice(start, start + bytes)).slice(0, bytes);
  }
}

/** Three letters and a space: one token. */
function word(random: Random): string {
  const letter = (): string => LETTERS[Math.floor(random.next() * LETTERS.length)] as string;
  return `${letter()}${letter()}${letter()} `;
}
