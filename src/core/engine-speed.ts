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
 * factors, one for prefill and one for decoding. An endpoint nothing was seen of is taken to be as fast as
 * its capacity was configured, else like its pool; without that, the prior would make a new endpoint of a
 * slow fleet look fast and flood it. What was seen fades while the pool goes on being seen: an endpoint
 * that once was slow is believed to be ordinary again some time, is tried, and shows what it is now.
 */
export class EngineSpeed {
  readonly #scales: SpeedScales;
  readonly #pool: SpeedScales;
  #configuredTokensPerSecond: number | undefined;
  #coefficients: EngineCoefficients | undefined;
  /** Observations of the pool that `#coefficients` was made of. */
  #poolSamples = 0;
  /** Observations of the pool when this endpoint was last seen. */
  readonly #poolSamplesAtOwn = { decode: 0, prefill: 0 };

  /** @param pool Shared by the endpoints of one pool; every observation reaches it too. */
  constructor(pool: SpeedScales, configuredTokensPerSecond: number | undefined) {
    this.#scales = new SpeedScales();
    this.#pool = pool;
    this.#configuredTokensPerSecond = configuredTokensPerSecond;
  }

  configure(tokensPerSecond: number | undefined): void {
    this.#configuredTokensPerSecond = tokensPerSecond;
    this.#coefficients = undefined;
  }

  /** How much slower than the prior decoding is. */
  get decodeScale(): number {
    return Math.exp(this.#believedLog("decode", this.#configuredLog ?? this.#pool.decode.log));
  }

  /** How much slower than the prior prefill is; as decoding until a prefill was seen. */
  get prefillScale(): number {
    return this.#isPrefillUnseen ? this.decodeScale : Math.exp(this.#believedLog("prefill", this.#pool.prefill.log));
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
    return tokensPerSecondOf(this.coefficients);
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
    // What the pool outweighs by now was another time: a change of speed must not be unlearned step by step.
    if (this.#weight(scale) < POOL_WEIGHT && this.#fade(scale) < 0.5) this.#scales.forget(scale);
    this.#scales[scale].observe(value);
    this.#pool[scale].observe(value);
    this.#poolSamplesAtOwn[scale] = this.#pool[scale].samples;
  }

  /** The endpoint's own value, and what is believed without it, by what each weighs. */
  #believedLog(scale: "decode" | "prefill", withoutIt: number): number {
    const own = this.#scales[scale];
    const weight = this.#weight(scale);
    const hope = own.samples === 0 ? 0 : HOPE * (1 - this.#fade(scale));
    return (weight * own.log + POOL_WEIGHT * (withoutIt - hope)) / (weight + POOL_WEIGHT);
  }

  /** What its own value counts, in samples. */
  #weight(scale: "decode" | "prefill"): number {
    return Math.min(this.#scales[scale].samples, MAX_OWN_WEIGHT) * this.#fade(scale);
  }

  /** From 1, just seen, towards 0 while only others are seen. */
  #fade(scale: "decode" | "prefill"): number {
    const unseenFor = this.#pool[scale].samples - this.#poolSamplesAtOwn[scale];
    return 2 ** (-unseenFor / (HALF_LIFE * this.#pool.endpoints));
  }

  get #configuredLog(): number | undefined {
    const configured = this.#configuredTokensPerSecond;
    return configured === undefined ? undefined : Math.log(PRIOR_TOKENS_PER_SECOND / configured);
  }
}

/** The two factors that are learned. */
export class SpeedScales {
  /** How many endpoints these are the scales of. */
  endpoints = 1;
  #decode = new QuantileTracker(DECODE_QUANTILE);
  #prefill = new QuantileTracker(PREFILL_QUANTILE);

  get decode(): QuantileTracker {
    return this.#decode;
  }

  get prefill(): QuantileTracker {
    return this.#prefill;
  }

  /** Observations of both. */
  get samples(): number {
    return this.#decode.samples + this.#prefill.samples;
  }

  /** Begins anew. */
  forget(scale: "decode" | "prefill"): void {
    if (scale === "decode") this.#decode = new QuantileTracker(DECODE_QUANTILE);
    else this.#prefill = new QuantileTracker(PREFILL_QUANTILE);
  }
}

/** The median: gaps between tokens are late as often as early. */
const DECODE_QUANTILE = 0.5;
/** Below the median: a wait for a slot or for others' prefill only ever adds to a first token's time. */
const PREFILL_QUANTILE = 0.35;

/** A batch and contexts of ordinary chat on a busy endpoint. */
const CAPACITY_BATCH = 32;
const CAPACITY_CONTEXT_TOKENS = 1024;

/** What is believed of an endpoint without having seen it weighs as much as this many samples of its own. */
const POOL_WEIGHT = 4;

/** More samples of its own than this count no further: belief is then within 6 % of what was seen. */
const MAX_OWN_WEIGHT = 64;

/**
 * In samples that each endpoint of the pool gave on the mean since the last of this one. From full weight it takes
 * four half-lives for the pool to weigh as much; then one request is risked on an endpoint believed to be slow.
 */
const HALF_LIFE = 250;

/**
 * An endpoint long unseen is hoped to be faster than its pool by this much, as a logarithm: at the same speed it
 * would never be the best of an idle fleet, and never be tried.
 */
const HOPE = 0.2;

const PRIOR_TOKENS_PER_SECOND = tokensPerSecondOf(PRIOR_COEFFICIENTS);

function tokensPerSecondOf(coefficients: EngineCoefficients): number {
  const stepMs = decodeStepMs(coefficients, CAPACITY_BATCH, CAPACITY_BATCH * CAPACITY_CONTEXT_TOKENS);
  return (CAPACITY_BATCH * 1000) / stepMs;
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
