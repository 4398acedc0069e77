/**
 * Time of one engine iteration under continuous batching with chunked prefill, in milliseconds:
 *
 *     T = stepMs + G(m) + tokenMs m + pairMs Q + contextMs K + sequenceMs B
 *     G(m) = max(weightsMs, computeMs m)
 *
 * m: tokens in the batch (prefill and decode), Q: token pairs of prefill attention, K: context tokens
 * of the running decodes, B: running decodes.
 */
export interface EngineCoefficients {
  /** Fixed part of a step. */
  readonly stepMs: number;
  /** Reading the weights once: the floor of a step, however small its batch. */
  readonly weightsMs: number;
  /** Compute per token of the batch, hidden behind `weightsMs` while the batch is small. */
  readonly computeMs: number;
  /** Element-wise work per token. */
  readonly tokenMs: number;
  /** Both together: what a token of prefill takes. Of its own, since nothing is asked for more often. */
  readonly prefillTokenMs: number;
  /** Attention per token pair of prefill. */
  readonly pairMs: number;
  /** Attention per context token of a running decode. */
  readonly contextMs: number;
  /** Per running sequence. */
  readonly sequenceMs: number;
  /** Running requests whose compute takes as long as reading the weights: weightsMs / computeMs. */
  readonly fullBatch: number;
  /** Tokens one iteration takes at most. */
  readonly maxBatchTokens: number;
}

/**
 * Prior for an engine nothing is known of: Llama-3-8B on one H100. Sources: kernel tables of NVIDIA
 * AIConfigurator, MLP profiles of Vidur, per-request constant of BLIS.
 */
export const PRIOR_COEFFICIENTS: EngineCoefficients = engineCoefficients({
  stepMs: 1.5,
  weightsMs: 5.7,
  computeMs: 0.0174,
  tokenMs: 0.0033,
  pairMs: 0.79e-6,
  contextMs: 43e-6,
  sequenceMs: 0.0044,
  maxBatchTokens: 8192,
});

/** Those that are measured; the others follow. */
export type MeasuredCoefficients = Omit<EngineCoefficients, "prefillTokenMs" | "fullBatch">;

/** Those of an engine of which these were measured. */
export function engineCoefficients(measured: MeasuredCoefficients): EngineCoefficients {
  const { weightsMs, computeMs, tokenMs } = measured;
  return { ...measured, prefillTokenMs: computeMs + tokenMs, fullBatch: weightsMs / computeMs };
}

/** Time the prefill of `tokens` uncached tokens with `pairs` attention pairs adds to the steps it shares. */
export function prefillMs(engine: EngineCoefficients, tokens: number, pairs: number): number {
  return engine.prefillTokenMs * tokens + engine.pairMs * pairs;
}

/** Time of a step that only decodes `sequences` requests with `contextTokens` between them. */
export function decodeStepMs(engine: EngineCoefficients, sequences: number, contextTokens: number): number {
  return (
    engine.stepMs +
    Math.max(engine.weightsMs, engine.computeMs * sequences) +
    engine.contextMs * contextTokens +
    (engine.sequenceMs + engine.tokenMs) * sequences
  );
}
