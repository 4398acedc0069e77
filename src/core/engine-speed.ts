import { decodeStepMs, type EngineCoefficients, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { type Scale, type SpeedPool, SpeedScales } from "./speed-pool.ts";

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
 * that once was slow is believed to be fast again some time, is tried, and shows what it is now.
 */
export class EngineSpeed {
  readonly #scales = new SpeedScales();
  readonly #pool: SpeedPool;
  #configuredTokensPerSecond: number | undefined;
  #coefficients: EngineCoefficients | undefined;
  /** The pool's version that `#coefficients` was made of. */
  #poolVersion = 0;
  /** Observations of the pool when this endpoint was last seen, or joined. */
  readonly #poolSamplesAtOwn: Record<Scale, number>;

  /** @param pool Shared by the endpoints of one pool; every observation reaches it too. */
  constructor(pool: SpeedPool, configuredTokensPerSecond: number | undefined) {
    this.#pool = pool;
    this.#configuredTokensPerSecond = configuredTokensPerSecond;
    this.#poolSamplesAtOwn = { decode: pool.samples("decode"), prefill: pool.samples("prefill") };
    pool.add(this.#scales);
  }

  /** The endpoint left its pool, which forgets it. */
  leave(): void {
    this.#pool.remove(this.#scales);
  }

  configure(tokensPerSecond: number | undefined): void {
    this.#configuredTokensPerSecond = tokensPerSecond;
    this.#coefficients = undefined;
  }

  /** How much slower than the prior decoding is. */
  get decodeScale(): number {
    return Math.exp(this.#decodeLog);
  }

  /** How much slower than the prior prefill is; as decoding until a prefill was seen. */
  get prefillScale(): number {
    // What sets endpoints apart, the hardware, sets both apart: its own decoding tells more than others' prefill.
    return Math.exp(this.#believedLog("prefill", this.#decodeLog + this.#pool.prefillOverDecodeLog));
  }

  /** Observations of this endpoint itself. */
  get samples(): number {
    return this.#scales.samples;
  }

  /** The prior, scaled: what one iteration of this engine is believed to cost. Compute is what prefill shows. */
  get coefficients(): EngineCoefficients {
    if (this.#coefficients === undefined || this.#poolVersion !== this.#pool.version) {
      this.#coefficients = scaledPrior(this.decodeScale, this.prefillScale);
      this.#poolVersion = this.#pool.version;
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
   * is less than half, or when the batch was so large that compute set its pace. False: it said nothing.
   */
  observeDecode(stretch: DecodeStretch, observedMs: number): boolean {
    const { tokens, sequences, contextTokens, prefillTokens, prefillPairs, prefillSteps } = stretch;
    const priorDecodeMs = tokens * decodeStepMs(PRIOR_COEFFICIENTS, Math.max(1, sequences), contextTokens);
    const priorPrefillMs =
      prefillMs(PRIOR_COEFFICIENTS, prefillTokens, prefillPairs) - hiddenMs(prefillTokens, prefillSteps);
    // Before a prefill was seen here the two scales are taken to stand to each other as in the pool: one is unknown.
    const prefillOverDecode = Math.exp(this.#pool.prefillOverDecodeLog);
    const jointScale = observedMs / (priorDecodeMs + prefillOverDecode * priorPrefillMs);
    const isPrefillUnseen = this.#scales.prefill.samples === 0;
    const prefillScale = isPrefillUnseen ? prefillOverDecode * jointScale : this.prefillScale;
    const decodeMs = observedMs - prefillScale * priorPrefillMs;
    const scale = decodeMs / priorDecodeMs;
    const isDecodeBound =
      scale * PRIOR_COEFFICIENTS.weightsMs >= prefillScale * PRIOR_COEFFICIENTS.computeMs * sequences;
    const isTelling = decodeMs > observedMs / 2 && isDecodeBound;
    if (isTelling) this.#observe("decode", scale);
    return isTelling;
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
    const isDecodeKnown = this.#weight("decode") >= POOL_WEIGHT;
    // No step is shorter than one that only decodes. Half of one leaves no doubt: if the belief came from slower
    // endpoints it is wrong, and if it is the endpoint's own, these prompts were done in a step that ended before.
    if (observedMs < (decodeScale * priorStepMs) / 2) {
      if (!isDecodeKnown) this.#observe("decode", observedMs / priorStepMs);
      return;
    }
    const scale = ownMs / priorPrefillMs;
    const isPossible = !isDecodeKnown || scale > decodeScale / MAX_PREFILL_LEAD;
    if (isComputeBound && isPossible) this.#observe("prefill", scale);
  }

  #observe(scale: Scale, value: number): void {
    if (!(value > 0)) return;
    // What the pool outweighs by now was another time: a change of speed must not be unlearned step by step.
    if (this.#weight(scale) < POOL_WEIGHT && this.#fade(scale) < 0.5) this.#scales.forget(scale);
    this.#scales[scale].observe(value);
    this.#pool.observed(scale);
    this.#poolSamplesAtOwn[scale] = this.#pool.samples(scale);
  }

  get #decodeLog(): number {
    const fade = this.#fade("decode");
    const expected = this.#configuredLog ?? this.#pool.decodeLog;
    const hoped = (this.#configuredLog ?? this.#pool.fastestDecodeLog) - HOPE;
    return this.#believedLog("decode", fade * expected + (1 - fade) * hoped);
  }

  /** The endpoint's own value, and what is believed without it, by what each weighs. */
  #believedLog(scale: Scale, withoutIt: number): number {
    const weight = this.#weight(scale);
    return (weight * this.#scales[scale].log + POOL_WEIGHT * withoutIt) / (weight + POOL_WEIGHT);
  }

  /** What its own value counts, in samples. */
  #weight(scale: Scale): number {
    return Math.min(this.#scales[scale].samples, MAX_OWN_WEIGHT) * this.#fade(scale);
  }

  /** From 1, just seen or new, towards 0 while only others are seen. */
  #fade(scale: Scale): number {
    const unseenFor = this.#pool.samples(scale) - this.#poolSamplesAtOwn[scale];
    return 2 ** (-unseenFor / (HALF_LIFE * this.#pool.size));
  }

  get #configuredLog(): number | undefined {
    const configured = this.#configuredTokensPerSecond;
    return configured === undefined ? undefined : Math.log(PRIOR_TOKENS_PER_SECOND / configured);
  }
}

/**
 * A prefill scale below the decode scale over this is no engine's. The prior's hardware does about as much arithmetic
 * per byte it reads as any, so that other hardware is slower at prefill than at decoding (processor cores by 30 times:
 * no upper bound), and only a slow host that adds to each step turns that round, by some 4 times.
 */
const MAX_PREFILL_LEAD = 8;

/** A batch and contexts of ordinary chat on a busy endpoint. */
const CAPACITY_BATCH = 32;
const CAPACITY_CONTEXT_TOKENS = 1024;

/**
 * What is believed of an endpoint without having seen it weighs as much as this many samples of its own: one sample
 * may be wild, while the endpoints of a mixed fleet differ by far more than the samples of one.
 */
const POOL_WEIGHT = 2;

/** More samples of its own than this count no further: belief is then within 3 % of what was seen. */
const MAX_OWN_WEIGHT = 64;

/**
 * In samples that each endpoint of the pool gave on the mean since the last of this one. From full weight it takes
 * five half-lives for the pool to weigh as much; then one request is risked on an endpoint believed to be slow.
 */
const HALF_LIFE = 200;

/**
 * An endpoint long unseen is hoped to be faster than the fastest of its pool by this much, as a logarithm: at the same
 * speed it would never be the best of an idle fleet, and never be tried.
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
