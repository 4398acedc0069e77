import { decodeStepMs, type EngineCoefficients, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { LearnedCoefficients } from "./learned-coefficients.ts";
import { type PooledSpeed, type Scale, type SpeedPool, SpeedScales } from "./speed-pool.ts";
import { ratiosOf, type Work, workMs } from "./work-fit.ts";

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

/** A piece of work that was timed. */
export interface SpeedSample {
  readonly scale: Scale;
  readonly work: Work;
  readonly ms: number;
  /** Spread of its logarithm. */
  readonly noise: number;
}

/** What is believed of an endpoint. */
interface Belief {
  readonly decodeScale: number;
  readonly prefillScale: number;
  /** Of the context tokens and the sequences, against a step's fixed part. */
  readonly decodeRatios: readonly number[];
  /** Of the attention pairs, against the tokens. */
  readonly prefillRatios: readonly number[];
}

/**
 * How fast an endpoint is, learned from the timings of its requests. Two kinds of work are learned, each as a scale
 * against the prior and the ratios of its other parts to its main one (`WorkFit`):
 *
 *     decode step = d (stepMs + weightsMs + r_K contextMs K + r_B (sequenceMs + tokenMs) B)
 *     prefill     = p ((computeMs + tokenMs) m + r_Q pairMs Q)
 *
 * The ratios are what sets models apart: a 70B model on four H100 takes 2.4 times the prior's time for the weights
 * and 0.7 times for the context, which one factor would make three times too dear at a full cache.
 *
 * An endpoint nothing was seen of is taken to be as fast as its capacity was configured, else like its pool; without
 * that, the prior would make a new endpoint of a slow fleet look fast and flood it. What was seen fades while the
 * pool goes on being seen: an endpoint that once was slow is believed to be fast again some time, is tried, and shows
 * what it is now.
 */
export class EngineSpeed implements PooledSpeed {
  readonly scales: SpeedScales = new SpeedScales();
  readonly #pool: SpeedPool;
  #configuredTokensPerSecond: number | undefined;
  #belief: Belief | undefined;
  readonly #coefficients = new LearnedCoefficients();
  /** Of the pool, when that was believed. */
  #believedAtVersion = NEVER;
  #untold: SpeedSample[] = [];
  /** Observations of the pool when this endpoint was last seen, or joined. */
  readonly #poolSamplesAtOwn: Record<Scale, number>;

  /** @param pool Shared by the endpoints of one pool; every observation reaches it too. */
  constructor(pool: SpeedPool, configuredTokensPerSecond: number | undefined) {
    this.#pool = pool;
    this.#configuredTokensPerSecond = configuredTokensPerSecond;
    this.#poolSamplesAtOwn = { decode: pool.samples("decode"), prefill: pool.samples("prefill") };
    pool.add(this);
  }

  /** The endpoint left its pool, which forgets it. */
  leave(): void {
    this.#pool.remove(this);
  }

  /** It came back to the pool that it had left. */
  rejoin(): void {
    this.#pool.add(this);
  }

  configure(tokensPerSecond: number | undefined): void {
    this.#configuredTokensPerSecond = tokensPerSecond;
    this.#believedAtVersion = NEVER;
    this.#pool.unsettle(this);
  }

  /** How much slower than the prior the fixed part of a decode step is. */
  get decodeScale(): number {
    return this.#believed().decodeScale;
  }

  /** How much slower than the prior prefill is, but for its attention; as decoding until a prefill was seen. */
  get prefillScale(): number {
    return this.#believed().prefillScale;
  }

  /** Observations of this endpoint itself. */
  get samples(): number {
    return this.scales.samples;
  }

  /** What one iteration of this engine is believed to cost: one object, which changes with what is believed. */
  get coefficients(): EngineCoefficients {
    this.update();
    return this.#coefficients;
  }

  /** The same object, as it was when it was last brought up to date. */
  get settledCoefficients(): EngineCoefficients {
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
    const { prefillRatios, decodeRatios } = this.#believed();
    const step = decodeWork(Math.max(1, sequences), contextTokens);
    const decodeWorkMs = tokens * workMs(step, decodeRatios);
    const prefillWorkMs =
      workMs(prefillWork(prefillTokens, prefillPairs), prefillRatios) - hiddenMs(prefillTokens, prefillSteps);
    // Before a prefill was seen here the two scales are taken to stand to each other as in the pool: one is unknown.
    const prefillOverDecode = Math.exp(this.#pool.prefillOverDecodeLog);
    const jointScale = observedMs / (decodeWorkMs + prefillOverDecode * prefillWorkMs);
    const isPrefillUnseen = this.scales.prefill.samples === 0;
    const prefillScale = isPrefillUnseen ? prefillOverDecode * jointScale : this.prefillScale;
    const decodeMs = observedMs - prefillScale * prefillWorkMs;
    const scale = decodeMs / decodeWorkMs;
    const isDecodeBound =
      scale * PRIOR_COEFFICIENTS.weightsMs >= prefillScale * PRIOR_COEFFICIENTS.computeMs * sequences;
    const isTelling = decodeMs > observedMs / 2 && isDecodeBound;
    // What is left of a difference is less exact than what it was taken from.
    const noise = (DECODE_NOISE * observedMs) / decodeMs;
    if (isTelling) this.#observe({ scale: "decode", work: step, ms: decodeMs / tokens, noise });
    return isTelling;
  }

  /**
   * A batch of prompts took `observedMs`, its steps counted whole. Where reading the weights takes longer
   * than the compute it hides, the time says nothing of the compute.
   */
  observePrefill({ tokens, pairs, sequences, contextTokens }: PrefillBatch, observedMs: number): void {
    const { decodeScale, prefillScale, decodeRatios, prefillRatios } = this.#believed();
    const steps = Math.ceil(tokens / PRIOR_COEFFICIENTS.maxBatchTokens);
    const weightsMs = decodeScale * PRIOR_COEFFICIENTS.weightsMs;
    const step = decodeWork(sequences, contextTokens);
    const stepMs = decodeScale * workMs(step, decodeRatios);
    const ownMs = observedMs - steps * (stepMs - weightsMs);
    const computeMs = Math.max(prefillScale, decodeScale) * PRIOR_COEFFICIENTS.computeMs * tokens;
    const isComputeBound = computeMs > weightsMs * steps;
    const isDecodeKnown = this.#weight("decode", this.#fade("decode")) >= POOL_WEIGHT;
    const noise = PREFILL_NOISE + BURST_MS / observedMs;
    // No step is shorter than one that only decodes. Half of one leaves no doubt: if the belief came from slower
    // endpoints it is wrong, and if it is the endpoint's own, these prompts were done in a step that ended before.
    if (observedMs < stepMs / 2) {
      if (!isDecodeKnown) this.#observe({ scale: "decode", work: step, ms: observedMs, noise });
      return;
    }
    const work = prefillWork(tokens, pairs);
    const scale = ownMs / workMs(work, prefillRatios);
    const isPossible = !isDecodeKnown || scale > decodeScale / MAX_PREFILL_LEAD;
    if (isComputeBound && isPossible) {
      this.#observe({ scale: "prefill", work, ms: ownMs, noise: (noise * observedMs) / ownMs });
    }
  }

  /** What was learned here since it was last asked, for others to learn from; of more than a few the last. */
  takeSamples(): readonly SpeedSample[] {
    const samples = this.#untold;
    if (samples.length > 0) this.#untold = [];
    return samples;
  }

  #observe(sample: SpeedSample): void {
    if (!(sample.ms > 0)) return;
    this.learn(sample);
    if (this.#untold.length === MAX_UNTOLD) this.#untold.shift();
    this.#untold.push(sample);
  }

  /** As if it had been timed here. */
  learn({ scale, work, ms, noise }: SpeedSample): void {
    // What the pool outweighs by now was another time: a change of speed must not be unlearned step by step.
    const fade = this.#fade(scale);
    if (fade < 0.5 && this.#weight(scale, fade) < POOL_WEIGHT) this.scales.forget(scale);
    this.scales[scale].observe(work, ms, noise, this.#pool.ratioLogs(scale));
    this.#pool.observed(this, scale);
    this.#poolSamplesAtOwn[scale] = this.#pool.samples(scale);
    this.#believedAtVersion = NEVER;
  }

  update(): void {
    if (this.#believedAtVersion !== this.#pool.version) this.#believe();
  }

  /** A method, since V8 looks up an accessor of a private name anew with each call. */
  #believed(): Belief {
    this.update();
    return this.#belief as Belief;
  }

  #believe(): void {
    const decodeFade = this.#fade("decode");
    const prefillFade = this.#fade("prefill");
    const decodeRatios = this.#ratios("decode", decodeFade);
    const prefillRatios = this.#ratios("prefill", prefillFade);
    const decodeLog = this.#believedLog("decode", decodeFade, decodeRatios, this.#decodeLogUnseen(decodeFade));
    // What sets endpoints apart, the hardware, sets both apart: its own decoding tells more than others' prefill.
    const prefillLogUnseen = decodeLog + this.#pool.prefillOverDecodeLog;
    const decodeScale = Math.exp(decodeLog);
    const prefillScale = Math.exp(this.#believedLog("prefill", prefillFade, prefillRatios, prefillLogUnseen));
    this.#belief = { decodeScale, prefillScale, decodeRatios, prefillRatios };
    this.#coefficients.scale(decodeScale, decodeRatios, prefillScale, prefillRatios);
    this.#believedAtVersion = this.#pool.version;
  }

  /** Its own, and the pool's where those say nothing, or nothing any more. */
  #ratios(scale: Scale, fade: number): number[] {
    const means = this.#pool.ratioLogs(scale);
    const logs = this.scales[scale].ratioLogs(means);
    for (let i = 0; i < logs.length; i++) logs[i] = fade * (logs[i] as number) + (1 - fade) * (means[i] as number);
    return ratiosOf(logs);
  }

  /** What is believed of decoding without having seen it, or having seen it long ago. */
  #decodeLogUnseen(fade: number): number {
    const expected = this.#configuredLog() ?? this.#pool.decodeLog;
    const hoped = (this.#configuredLog() ?? this.#pool.fastestDecodeLog) - HOPE;
    return fade * expected + (1 - fade) * hoped;
  }

  /** The endpoint's own value, and what is believed without it, by what each weighs. */
  #believedLog(scale: Scale, fade: number, ratios: readonly number[], withoutIt: number): number {
    const weight = this.#weight(scale, fade);
    return (weight * this.scales[scale].scaleLog(ratios) + POOL_WEIGHT * withoutIt) / (weight + POOL_WEIGHT);
  }

  /** What its own value counts, in samples. */
  #weight(scale: Scale, fade: number): number {
    return Math.min(this.scales[scale].samples, MAX_OWN_WEIGHT) * fade;
  }

  /** From 1, just seen or new, towards 0 while only others are seen. */
  #fade(scale: Scale): number {
    const unseenFor = this.#pool.samples(scale) - this.#poolSamplesAtOwn[scale];
    return Math.exp((-Math.LN2 * unseenFor) / (HALF_LIFE * this.#pool.size));
  }

  #configuredLog(): number | undefined {
    const configured = this.#configuredTokensPerSecond;
    return configured === undefined ? undefined : Math.log(PRIOR_TOKENS_PER_SECOND / configured);
  }
}

/** In place of a version of the pool: something of the endpoint's own has changed since. */
const NEVER = -1;

/** More than an endpoint gives in half a second, but for a storm of short prompts, of which some tell as much as all. */
const MAX_UNTOLD = 8;

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

/**
 * Spread of the logarithm of a time. A stretch of decoding is blurred at its ends, a prompt's by what its engine did
 * besides, and by the bursts that first tokens may come in: those of short prompts tell little.
 */
const DECODE_NOISE = 0.1;
const PREFILL_NOISE = 0.15;
const BURST_MS = 50;

const PRIOR_TOKENS_PER_SECOND = tokensPerSecondOf(PRIOR_COEFFICIENTS);

function tokensPerSecondOf(coefficients: EngineCoefficients): number {
  const stepMs = decodeStepMs(coefficients, CAPACITY_BATCH, CAPACITY_BATCH * CAPACITY_CONTEXT_TOKENS);
  return (CAPACITY_BATCH * 1000) / stepMs;
}

/**
 * A decode step whose pace the reading of the weights sets; beside it the context tokens and the sequences. Compute
 * that shows before it sets the pace alone (the bend of a real engine is round) is learned as a cost of sequences.
 */
function decodeWork(sequences: number, contextTokens: number): Work {
  const { stepMs, weightsMs, contextMs, sequenceMs, tokenMs } = PRIOR_COEFFICIENTS;
  return { mainMs: stepMs + weightsMs, otherMs: [contextMs * contextTokens, (sequenceMs + tokenMs) * sequences] };
}

/** Prefill: its tokens, and beside them the attention pairs. */
function prefillWork(tokens: number, pairs: number): Work {
  const { computeMs, tokenMs, pairMs } = PRIOR_COEFFICIENTS;
  return { mainMs: (computeMs + tokenMs) * tokens, otherMs: [pairMs * pairs] };
}

/** Compute of a prefill that costs no time, since the steps that hold it read the weights anyway. */
function hiddenMs(tokens: number, steps: number): number {
  return Math.min(PRIOR_COEFFICIENTS.computeMs * tokens, PRIOR_COEFFICIENTS.weightsMs * steps);
}
