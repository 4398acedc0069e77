import type { Random } from "../../core/index.ts";
import { shown } from "./workload-error.ts";

/** A measured distribution of token counts. */
export class TokenCounts {
  readonly #counts: readonly number[];
  /** Sum of the weights up to and with each count. */
  readonly #cumulative: Float64Array;

  private constructor(counts: readonly number[], weights: readonly number[]) {
    this.#counts = counts;
    this.#cumulative = new Float64Array(weights.length);
    let sum = 0;
    for (const [index, weight] of weights.entries()) {
      sum += weight;
      this.#cumulative[index] = sum;
    }
  }

  /**
   * @param text "{count: probability, ...}"; the probabilities need not add up to exactly 1.
   * @throws what `error` makes of a message.
   */
  static parse(text: string, error: (message: string) => Error): TokenCounts {
    const pairs = text
      .replace(/^\{|\}$/g, "")
      .split(",")
      .map((pair) => pair.split(":").map(Number));
    const isPair = ([count = Number.NaN, weight = Number.NaN]: number[]) =>
      Number.isSafeInteger(count) && count >= 0 && weight >= 0;
    if (!pairs.every(isPair) || !pairs.some(([, weight = 0]) => weight > 0)) {
      throw error(`expected {TOKENS: PROBABILITY, ...}, got ${shown(text)}`);
    }
    return new TokenCounts(
      pairs.map(([count]) => count as number),
      pairs.map(([, weight]) => weight as number),
    );
  }

  /** A count; 0, which some clients have, becomes 1. */
  draw(random: Random): number {
    const cumulative = this.#cumulative;
    const target = random.next() * (cumulative.at(-1) as number);
    let low = 0;
    let high = cumulative.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((cumulative[middle] as number) > target) high = middle;
      else low = middle + 1;
    }
    return Math.max(1, this.#counts[low] as number);
  }
}
