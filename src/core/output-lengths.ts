import { LengthHistogram } from "./length-histogram.ts";
import { fixedOutput, MIN_REMAINING_TOKENS, type OutputExpectation } from "./output-expectation.ts";
import { DEFAULT_OUTPUT_TOKENS } from "./request.ts";

/** What a request's output length is learned by. */
export interface OutputKey {
  readonly model: string;
  /** The API called: a chat and a completion of one model differ in length. */
  readonly route: string;
  /** The client's bound; undefined: none. */
  readonly maxOutputTokens: number | undefined;
}

/**
 * Output lengths by (model, route, bucket of max_tokens). A key with few completions leans on its
 * model, and the model on an exponential prior of mean `DEFAULT_OUTPUT_TOKENS`: each parent weighs
 * `PARENT_WEIGHT` completions. The mean residual life is that of the mixture:
 *
 *     r(n) = sum w_i E[(X_i - n)+] / sum w_i P(X_i > n)
 */
export class OutputLengths {
  readonly #byKey = new Map<string, LengthHistogram>();
  readonly #byModel = new Map<string, LengthHistogram>();
  #observations = 0;

  /** Live: it follows what is learned while the request runs. Bounded by the client's max_tokens. */
  expect(key: OutputKey): OutputExpectation {
    const bound = key.maxOutputTokens === undefined ? Number.POSITIVE_INFINITY : Math.floor(key.maxOutputTokens);
    if (bound <= 0) return fixedOutput(0);
    const name = nameOf(key);
    // What was answered last: to place a request, its whole is asked for once for each endpoint.
    let askedTokens = -1;
    let askedAt = -1;
    let answer = 0;
    const remainingAfter = (generatedTokens: number): number => {
      if (generatedTokens === askedTokens && this.#observations === askedAt) return answer;
      askedTokens = generatedTokens;
      askedAt = this.#observations;
      const mean = residual([this.#byModel.get(key.model), this.#byKey.get(name)], generatedTokens);
      const expected = Math.max(MIN_REMAINING_TOKENS, Math.round(mean));
      // A client's bound is certain, so it may undercut the floor; one token is the least that is still to come.
      answer = Math.max(1, Math.min(expected, bound - generatedTokens));
      return answer;
    };
    return { meanTokens: remainingAfter(0), remainingAfter };
  }

  /** A request of this key ran to its end with `outputTokens`. Aborted ones say nothing: they were cut. */
  observe(key: OutputKey, outputTokens: number): void {
    if (!(outputTokens >= 0)) return;
    this.#observations++;
    histogram(this.#byKey, nameOf(key))?.observe(outputTokens);
    histogram(this.#byModel, key.model)?.observe(outputTokens);
  }
}

/** In completions. */
const PARENT_WEIGHT = 20;

/** Model names may come from clients where an endpoint accepts any: past this many keys new ones are not learned. */
const MAX_KEYS = 2048;

/** @param seen The parent first; undefined: nothing was seen of it yet. */
function residual(seen: readonly (LengthHistogram | undefined)[], generatedTokens: number): number {
  // Chance that an output goes beyond the point, and its expected length beyond it, both over all outputs.
  let beyond = Math.exp(-generatedTokens / DEFAULT_OUTPUT_TOKENS);
  let excess = beyond * DEFAULT_OUTPUT_TOKENS;
  for (const lengths of seen) {
    if (lengths === undefined) continue;
    const tail = lengths.beyond(generatedTokens);
    const total = lengths.weight + PARENT_WEIGHT;
    beyond = (tail.weight + PARENT_WEIGHT * beyond) / total;
    excess = (tail.excess + PARENT_WEIGHT * excess) / total;
  }
  // Far beyond every length seen the prior alone is left, until it vanishes too.
  return beyond > 0 ? excess / beyond : DEFAULT_OUTPUT_TOKENS;
}

function histogram(table: Map<string, LengthHistogram>, name: string): LengthHistogram | undefined {
  let found = table.get(name);
  if (found === undefined && table.size < MAX_KEYS) {
    found = new LengthHistogram();
    table.set(name, found);
  }
  return found;
}

/** Buckets of max_tokens are octaves: 100 and 120 are one habit, 100 and 4,000 two. */
function nameOf(key: OutputKey): string {
  const bucket = key.maxOutputTokens === undefined ? "none" : Math.ceil(Math.log2(Math.max(1, key.maxOutputTokens)));
  return `${bucket} ${key.route} ${key.model}`;
}
