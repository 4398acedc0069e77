import type { EngineProfile } from "./engine-profiles.ts";

/** What one engine iteration works on. */
export interface StepWork {
  /** Tokens in the batch, prefill and decode. */
  tokens: number;
  /** Attention pairs of the prefill chunks: the sum of n (start + n / 2). */
  pairs: number;
  /** Context tokens of the decodes. */
  contextTokens: number;
  /** Decodes in the batch. */
  decodes: number;
}

/**
 * Duration of one iteration in milliseconds at the profile's own speed. It is the formula of
 * `EngineCoefficients` with a smooth G: weights and compute overlap, but not perfectly near the bend.
 */
export function stepMs(profile: EngineProfile, work: Readonly<StepWork>): number {
  const engine = profile.coefficients;
  const floorMs =
    (engine.weightsMs ** profile.bend + (engine.computeMs * work.tokens) ** profile.bend) ** (1 / profile.bend);
  return (
    engine.stepMs +
    floorMs +
    engine.tokenMs * work.tokens +
    engine.pairMs * work.pairs +
    engine.contextMs * work.contextTokens +
    engine.sequenceMs * work.decodes
  );
}
