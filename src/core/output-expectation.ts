/** Output tokens a request is still good for, as a function of what it has generated. */
export interface OutputExpectation {
  /** Expected length of the whole output, in tokens. */
  readonly meanTokens: number;
  /** Mean residual life: whole tokens still expected after `generatedTokens`, never below the floor. */
  remainingAfter(generatedTokens: number): number;
}

/**
 * A running request always counts for at least this many tokens: it holds its slot and its KV
 * until it says it is done, however wrong the estimate was.
 */
export const MIN_REMAINING_TOKENS = 4;

/** An expectation of exactly `meanTokens`; 0 means the request generates nothing (embeddings, scoring). */
export function fixedOutput(meanTokens: number): OutputExpectation {
  if (meanTokens <= 0) return NO_OUTPUT;
  return {
    meanTokens,
    remainingAfter: (generatedTokens) => Math.max(MIN_REMAINING_TOKENS, Math.round(meanTokens - generatedTokens)),
  };
}

const NO_OUTPUT: OutputExpectation = { meanTokens: 0, remainingAfter: () => 0 };
