import { decodeStepMs, type EngineCoefficients, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { QuantileTracker } from "./quantile-tracker.ts";

/**
 * How fast an endpoint is, learned from the timings of its streams: the prior coefficients times two
 * factors, one for prefill and one for decoding. An endpoint nothing was seen of is taken to be like
 * its pool; without that, the prior would make a new endpoint of a slow fleet look fast and flood it.
 */
export class EngineSpeed {
  readonly #scales: SpeedScales;
  readonly #pool: SpeedScales;
  #configuredTokensPerSecond: number | undefined;

  /** @param pool Shared by the endpoints of one pool; every observation reaches it too. */
  constructor(pool: SpeedScales, configuredTokensPerSecond: number | undefined) {
    this.#scales = new SpeedScales();
    this.#pool = pool;
    this.#configuredTokensPerSecond = configuredTokensPerSecond;
  }

  configure(tokensPerSecond: number | undefined): void {
    this.#configuredTokensPerSecond = tokensPerSecond;
  }

  /** How much slower than the prior decoding is. */
  get decodeScale(): number {
    return Math.exp(blendedLog(this.#scales.decode, this.#pool.decode));
  }

  /** How much slower than the prior prefill is; as decoding until a prefill was seen. */
  get prefillScale(): number {
    const isUnseen = this.#scales.prefill.samples === 0 && this.#pool.prefill.samples === 0;
    return isUnseen ? this.decodeScale : Math.exp(blendedLog(this.#scales.prefill, this.#pool.prefill));
  }

  /** Observations of this endpoint itself. */
  get samples(): number {
    return this.#scales.decode.samples + this.#scales.prefill.samples;
  }

  /** The prior, scaled: what one iteration of this engine is believed to cost. */
  get coefficients(): EngineCoefficients {
    const decode = this.decodeScale;
    const prefill = this.prefillScale;
    return {
      stepMs: PRIOR_COEFFICIENTS.stepMs * decode,
      weightsMs: PRIOR_COEFFICIENTS.weightsMs * decode,
      computeMs: PRIOR_COEFFICIENTS.computeMs * prefill,
      tokenMs: PRIOR_COEFFICIENTS.tokenMs * prefill,
      pairMs: PRIOR_COEFFICIENTS.pairMs * prefill,
      contextMs: PRIOR_COEFFICIENTS.contextMs * decode,
      sequenceMs: PRIOR_COEFFICIENTS.sequenceMs * decode,
      maxBatchTokens: PRIOR_COEFFICIENTS.maxBatchTokens,
    };
  }

  /**
   * Capacity in output tokens per second: as configured, else what the learned coefficients give at
   * `CAPACITY_BATCH` requests. One batch for all endpoints, so that an endpoint that happens to get
   * less traffic does not look slower and get less still.
   */
  get tokensPerSecond(): number {
    if (this.#configuredTokensPerSecond !== undefined) return this.#configuredTokensPerSecond;
    const stepMs = this.decodeStepMs(CAPACITY_BATCH, CAPACITY_BATCH * CAPACITY_CONTEXT_TOKENS);
    return (CAPACITY_BATCH * 1000) / stepMs;
  }

  /** Time a prefill of `tokens` uncached tokens and `pairs` attention pairs takes. */
  prefillMs(tokens: number, pairs: number): number {
    return this.prefillScale * prefillMs(PRIOR_COEFFICIENTS, tokens, pairs);
  }

  /** Time of one decode step of `sequences` requests with `contextTokens` between them. */
  decodeStepMs(sequences: number, contextTokens: number): number {
    return this.decodeScale * decodeStepMs(PRIOR_COEFFICIENTS, sequences, contextTokens);
  }

  /** A step that only decoded took `observedMs` for each token of each of its `sequences` requests. */
  observeStep(sequences: number, contextTokens: number, observedMs: number): void {
    if (observedMs <= 0) return;
    const ratio = observedMs / decodeStepMs(PRIOR_COEFFICIENTS, Math.max(1, sequences), contextTokens);
    this.#scales.decode.observe(ratio);
    this.#pool.decode.observe(ratio);
  }

  /**
   * A prefill of `tokens` and `pairs` took `observedMs`, the steps it shared with `sequences` running
   * requests included. Short prompts say nothing: they hide behind the reading of the weights.
   */
  observePrefill(tokens: number, pairs: number, sequences: number, contextTokens: number, observedMs: number): void {
    if (tokens < MIN_PREFILL_SAMPLE_TOKENS) return;
    const ownMs = observedMs - this.decodeStepMs(sequences, contextTokens);
    if (ownMs <= 0) return;
    const ratio = ownMs / prefillMs(PRIOR_COEFFICIENTS, tokens, pairs);
    this.#scales.prefill.observe(ratio);
    this.#pool.prefill.observe(ratio);
  }
}

/** The two factors that are learned. */
export class SpeedScales {
  /** The median: gaps between tokens are late as often as early. */
  readonly decode: QuantileTracker = new QuantileTracker(0.5);
  /** Below the median: a wait for a slot or for others' prefill only ever adds to a first token's time. */
  readonly prefill: QuantileTracker = new QuantileTracker(0.35);
}

const CAPACITY_BATCH = 32;
const CAPACITY_CONTEXT_TOKENS = 1024;

/** On an H100 about 330 tokens take as long as reading the weights; below half of that a sample is noise. */
const MIN_PREFILL_SAMPLE_TOKENS = 160;

/** The pool's value weighs as much as this many own samples. */
const POOL_WEIGHT = 4;

function blendedLog(own: QuantileTracker, pool: QuantileTracker): number {
  return (own.samples * own.log + POOL_WEIGHT * pool.log) / (own.samples + POOL_WEIGHT);
}
