import { type EngineCoefficients, PRIOR_COEFFICIENTS } from "./engine-coefficients.ts";

/**
 * What one endpoint is believed to cost, in one object for as long as it is known: every decision reads those of all
 * endpoints, and V8 is fast with objects of one class whose numbers change in place.
 */
export class LearnedCoefficients implements EngineCoefficients {
  stepMs: number = PRIOR_COEFFICIENTS.stepMs;
  weightsMs: number = PRIOR_COEFFICIENTS.weightsMs;
  computeMs: number = PRIOR_COEFFICIENTS.computeMs;
  tokenMs: number = PRIOR_COEFFICIENTS.tokenMs;
  prefillTokenMs: number = PRIOR_COEFFICIENTS.prefillTokenMs;
  pairMs: number = PRIOR_COEFFICIENTS.pairMs;
  contextMs: number = PRIOR_COEFFICIENTS.contextMs;
  sequenceMs: number = PRIOR_COEFFICIENTS.sequenceMs;
  fullBatch: number = PRIOR_COEFFICIENTS.fullBatch;
  readonly maxBatchTokens: number = PRIOR_COEFFICIENTS.maxBatchTokens;

  /** Becomes the prior, scaled by what was learned: see `EngineSpeed`. */
  scale(
    decodeScale: number,
    [contextRatio = 1, sequenceRatio = 1]: readonly number[],
    prefillScale: number,
    [pairRatio = 1]: readonly number[],
  ): void {
    const prior = PRIOR_COEFFICIENTS;
    const perSequenceMs = (prior.sequenceMs + prior.tokenMs) * decodeScale * sequenceRatio;
    this.stepMs = prior.stepMs * decodeScale;
    this.weightsMs = prior.weightsMs * decodeScale;
    this.computeMs = prior.computeMs * prefillScale;
    this.tokenMs = prior.tokenMs * prefillScale;
    this.prefillTokenMs = this.computeMs + this.tokenMs;
    this.pairMs = prior.pairMs * prefillScale * pairRatio;
    this.contextMs = prior.contextMs * decodeScale * contextRatio;
    this.fullBatch = this.weightsMs / this.computeMs;
    // Decoding shows what a sequence adds to a step with the work on its token.
    this.sequenceMs = Math.max(perSequenceMs - this.tokenMs, MIN_SEQUENCE_SHARE * prior.sequenceMs * decodeScale);
  }
}

/** A sequence costs something, even where prefill says that the work on its token alone costs more than was seen. */
const MIN_SEQUENCE_SHARE = 0.1;
