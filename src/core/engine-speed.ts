import { decodeStepMs, type EngineCoefficients, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { QuantileTracker } from "./quantile-tracker.ts";

/** Prompts that were brought to their first tokens together. */
export interface PrefillBatch {
  /** Their uncached tokens and attention pairs. */
  readonly tokens: number;
  readonly pairs: number;
  /** Running requests that decoded in the same steps, and their context tokens. */
  readonly sequences: number;
  readonly contextTokens: number;
}

/** A stretch of one request's decoding. */
export interface DecodeStretch {
  /** Tokens it generated. */
  readonly tokens: number;
  /** Requests that decoded, and their context tokens: the means over the stretch. */
  readonly sequences: number;
  readonly contextTokens: number;
  /** Prefill that the endpoint did meanwhile, and the steps that held it. */
  readonly prefillTokens: number;
  readonly prefillPairs: number;
  readonly prefillSteps: number;
}

/**
 * How fast an endpoint is, learned from the timings of its requests: the prior coefficients times two
 * factors, one for prefill and one for decoding. An endpoint nothing was seen of is taken to be like
 * its pool; without that, the prior would make a new endpoint of a slow fleet look fast and flood it.
 */
export class EngineSpeed {
  readonly #scales: SpeedScales;
  readonly #pool: SpeedScales;
  #configuredTokensPerSecond: number | undefined;
  #coefficients: EngineCoefficients | undefined;
  /** Observations of the pool that `#coefficients` was made of. */
  #poolSamples = 0;

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
    return this.#isPrefillUnseen ? this.decodeScale : Math.exp(blendedLog(this.#scales.prefill, this.#pool.prefill));
  }

  /** Observations of this endpoint itself. */
  get samples(): number {
    return this.#scales.samples;
  }

  /** The prior, scaled: what one iteration of this engine is believed to cost. Compute is what prefill shows. */
  get coefficients(): EngineCoefficients {
    if (this.#coefficients === undefined || this.#poolSamples !== this.#pool.samples) {
      this.#coefficients = scaledPrior(this.decodeScale, this.prefillScale);
      this.#poolSamples = this.#pool.samples;
    }
    return this.#coefficients;
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
    return prefillMs(this.coefficients, tokens, pairs);
  }

  /** Time of one decode step of `sequences` requests with `contextTokens` between them. */
  decodeStepMs(sequences: number, contextTokens: number): number {
    return decodeStepMs(this.coefficients, sequences, contextTokens);
  }

  /**
   * A stretch of decoding took `observedMs`. Decoding is what prefill leaves of it, and says nothing when that
   * is less than half, or when the batch was so large that compute set its pace.
   */
  observeDecode(stretch: DecodeStretch, observedMs: number): void {
    const { tokens, sequences, contextTokens, prefillTokens, prefillPairs, prefillSteps } = stretch;
    const priorDecodeMs = tokens * decodeStepMs(PRIOR_COEFFICIENTS, Math.max(1, sequences), contextTokens);
    const priorPrefillMs =
      prefillMs(PRIOR_COEFFICIENTS, prefillTokens, prefillPairs) - hiddenMs(prefillTokens, prefillSteps);
    // Before a prefill was seen both scales are one.
    const jointScale = observedMs / (priorDecodeMs + priorPrefillMs);
    const prefillScale = this.#isPrefillUnseen ? jointScale : this.prefillScale;
    const decodeMs = observedMs - prefillScale * priorPrefillMs;
    const scale = decodeMs / priorDecodeMs;
    const isDecodeBound =
      scale * PRIOR_COEFFICIENTS.weightsMs >= prefillScale * PRIOR_COEFFICIENTS.computeMs * sequences;
    if (decodeMs > observedMs / 2 && isDecodeBound) this.#observe("decode", scale);
  }

  /**
   * A batch of prompts took `observedMs`, its steps counted whole. Where reading the weights takes longer
   * than the compute it hides, the time says nothing of the compute.
   */
  observePrefill({ tokens, pairs, sequences, contextTokens }: PrefillBatch, observedMs: number): void {
    const { decodeScale } = this;
    const steps = Math.ceil(tokens / PRIOR_COEFFICIENTS.maxBatchTokens);
    const priorStepMs = decodeStepMs(PRIOR_COEFFICIENTS, sequences, contextTokens);
    const priorPrefillMs = prefillMs(PRIOR_COEFFICIENTS, tokens, pairs);
    const ownMs = observedMs - decodeScale * steps * (priorStepMs - PRIOR_COEFFICIENTS.weightsMs);
    const computeMs = Math.max(this.prefillScale, decodeScale) * PRIOR_COEFFICIENTS.computeMs * tokens;
    const isComputeBound = computeMs > decodeScale * PRIOR_COEFFICIENTS.weightsMs * steps;
    // No step is shorter than one that only decodes. Half of one leaves no doubt: the belief came from slower endpoints.
    if (observedMs < (decodeScale * priorStepMs) / 2) this.#observe("decode", observedMs / priorStepMs);
    else if (isComputeBound) this.#observe("prefill", ownMs / priorPrefillMs);
  }

  get #isPrefillUnseen(): boolean {
    return this.#pool.prefill.samples === 0;
  }

  #observe(scale: "decode" | "prefill", value: number): void {
    if (!(value > 0)) return;
    this.#scales[scale].observe(value);
    this.#pool[scale].observe(value);
  }
}

/** The two factors that are learned. */
export class SpeedScales {
  /** The median: gaps between tokens are late as often as early. */
  readonly decode: QuantileTracker = new QuantileTracker(0.5);
  /** Below the median: a wait for a slot or for others' prefill only ever adds to a first token's time. */
  readonly prefill: QuantileTracker = new QuantileTracker(0.35);

  /** Observations of both. */
  get samples(): number {
    return this.decode.samples + this.prefill.samples;
  }
}

/** A batch and contexts of ordinary chat on a busy endpoint. */
const CAPACITY_BATCH = 32;
const CAPACITY_CONTEXT_TOKENS = 1024;

/** The pool's value weighs as much as this many own samples. */
const POOL_WEIGHT = 4;

function blendedLog(own: QuantileTracker, pool: QuantileTracker): number {
  return (own.samples * own.log + POOL_WEIGHT * pool.log) / (own.samples + POOL_WEIGHT);
}

function scaledPrior(decode: number, prefill: number): EngineCoefficients {
  const prior = PRIOR_COEFFICIENTS;
  return {
    stepMs: prior.stepMs * decode,
    weightsMs: prior.weightsMs * decode,
    computeMs: prior.computeMs * prefill,
    tokenMs: prior.tokenMs * prefill,
    pairMs: prior.pairMs * prefill,
    contextMs: prior.contextMs * decode,
    sequenceMs: prior.sequenceMs * decode,
    maxBatchTokens: prior.maxBatchTokens,
  };
}

/** Compute of a prefill that costs no time, since the steps that hold it read the weights anyway. */
function hiddenMs(tokens: number, steps: number): number {
  return Math.min(PRIOR_COEFFICIENTS.computeMs * tokens, PRIOR_COEFFICIENTS.weightsMs * steps);
}
