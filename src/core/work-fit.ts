import { KalmanFit } from "./kalman-fit.ts";
import { QuantileTracker } from "./quantile-tracker.ts";

/** Work in milliseconds of the prior: its main part, above 0, and the others. */
export interface Work {
  readonly mainMs: number;
  readonly otherMs: readonly number[];
}

/** Time of `work` where each of its other parts is dearer than in the prior by its ratio. */
export function workMs({ mainMs, otherMs }: Work, ratios: readonly number[]): number {
  let ms = mainMs;
  for (let i = 0; i < otherMs.length; i++) ms += (otherMs[i] as number) * (ratios[i] as number);
  return ms;
}

/** The ratios whose logarithms these are. */
export function ratiosOf(ratioLogs: readonly number[]): number[] {
  const ratios = ratioLogs.slice();
  for (let i = 0; i < ratios.length; i++) ratios[i] = Math.exp(ratios[i] as number);
  return ratios;
}

/** How a kind of work is learned. */
export interface WorkKind {
  /** Which quantile of its times is meant. */
  readonly quantile: number;
  /** Of each other part's ratio: how far its logarithm is expected to be from 0. */
  readonly spreads: readonly number[];
}

/**
 * Learns what a kind of work takes on one engine:
 *
 *     ms = scale x (main + ratio_1 other_1 + ratio_2 other_2 + ...)
 *
 * The ratios belong to the model and its hardware and only show in work of changing make-up, by small differences
 * over a long time; the scale shows in each sample and may change at any time. So the two are learned apart: the
 * ratios by regression, the scale by a quantile tracker. That follows not the scale but the *level*: how much longer
 * work of the usual make-up takes than in the prior. Were it the scale, every move of a ratio would move the time of
 * usual work too, which is what is known best.
 *
 * Where sample after sample is far off on the same side it is another engine by now, and is learned from nothing:
 * step by step the ratios would take for theirs what the whole engine did.
 */
export class WorkFit {
  readonly #kind: WorkKind;
  #level: QuantileTracker;
  /** The level of work like `#center`, as the regression has it, then the ratios; logarithms. */
  #fit: KalmanFit;
  /** Usual work, its main part being 1. */
  readonly #usual: { readonly mainMs: 1; readonly otherMs: number[] };
  /** What was usual when the regression began: its ratios are told by what differs from that. */
  #center: Work;
  #usualCertainty = 0;
  /** By unknown of the regression; lists that are filled again and again, to spare the garbage. */
  readonly #expected: number[];
  readonly #slopes: number[];
  /** How many samples in a row were far off on one side: above 0 too long, below 0 too short. */
  #run = 0;

  constructor(kind: WorkKind) {
    this.#kind = kind;
    this.#level = new QuantileTracker(kind.quantile);
    this.#fit = fitOf(kind);
    this.#usual = { mainMs: 1, otherMs: kind.spreads.map(() => 0) };
    this.#center = this.#usual;
    this.#expected = [0, ...kind.spreads];
    this.#slopes = [1, ...kind.spreads];
  }

  /** Of the engine as it is now. */
  get samples(): number {
    return this.#level.samples;
  }

  /** Of one ratio: its logarithm as this work alone shows it, shrunk towards 0 by what is not known of it. */
  ownRatioLog(ratio: number): number {
    return this.#fit.value(1 + ratio);
  }

  /** How much this work has shown of a ratio, 0 to 1. */
  knownOfRatio(ratio: number): number {
    return this.#fit.known(1 + ratio);
  }

  /** The ratios' logarithms where others' are `means`: theirs, as far as this work shows nothing else. */
  ratioLogs(means: readonly number[]): number[] {
    const expected = this.#expectedFrom(means);
    const logs = means.slice();
    for (let ratio = 0; ratio < logs.length; ratio++) logs[ratio] = this.#fit.valueFrom(1 + ratio, expected);
    return logs;
  }

  /** Natural logarithm of the scale that goes with these ratios; 0 before any sample. */
  scaleLog(ratios: readonly number[]): number {
    return this.#level.log - longerLog(this.#usual, ratios);
  }

  /**
   * `work` took `ms`.
   * @param noise Spread of the logarithm of that time.
   * @param means As for `ratioLogs`.
   */
  observe(work: Work, ms: number, noise: number, means: readonly number[]): void {
    let ratios = ratiosOf(this.ratioLogs(means));
    let scaleLog = Math.log(ms / workMs(work, ratios));
    if (this.#isAnother(scaleLog, ratios)) {
      this.#begin();
      ratios = ratiosOf(this.ratioLogs(means));
      scaleLog = Math.log(ms / workMs(work, ratios));
    }
    const wasWarm = this.#level.isWarm;
    const weight = 1 / Math.min(this.samples + 1, USUAL_SAMPLES);
    const certainty = 1 / noise ** 2;
    this.#usualCertainty += weight * (certainty - this.#usualCertainty);
    const usualLog = this.#meet(work, weight, ratios);
    if (wasWarm) this.#regress(work, scaleLog, noise, means, ratios);
    this.#level.observe(Math.exp(scaleLog + usualLog), Math.min(MAX_WEIGHT, certainty / this.#usualCertainty));
    // From here on the regression goes its own way: the level is too quick for it, and would take what the ratios did.
    if (!wasWarm && this.#level.isWarm) {
      this.#center = { mainMs: 1, otherMs: [...this.#usual.otherMs] };
      this.#fit.set(0, this.#level.log, noise / 4);
    }
  }

  /** What others make expect of each unknown of the regression; of the level, nothing. */
  #expectedFrom(means: readonly number[]): readonly number[] {
    for (let i = 0; i < means.length; i++) this.#expected[1 + i] = means[i] as number;
    return this.#expected;
  }

  /**
   * By how much the level moves with each unknown: as much as itself, and with a ratio by how much more the logarithm
   * of the time of `work` does than that of the regression's usual work.
   */
  #slopesOf(work: Work, ratios: readonly number[]): readonly number[] {
    const ms = workMs(work, ratios);
    const usualMs = workMs(this.#center, ratios);
    for (let i = 0; i < ratios.length; i++) {
      const share = (work.otherMs[i] as number) / ms - (this.#center.otherMs[i] as number) / usualMs;
      this.#slopes[1 + i] = (ratios[i] as number) * share;
    }
    return this.#slopes;
  }

  /** Counts how long samples, given as scales, have been far off. */
  #isAnother(scaleLog: number, ratios: readonly number[]): boolean {
    if (this.samples === 0) return false;
    const offBy = scaleLog - this.scaleLog(ratios);
    const side = Math.abs(offBy) < FAR_OFF ? 0 : Math.sign(offBy);
    this.#run = side === Math.sign(this.#run) ? this.#run + side : side;
    return Math.abs(this.#run) >= FAR_OFF_RUN;
  }

  #begin(): void {
    this.#level = new QuantileTracker(this.#kind.quantile);
    this.#fit = fitOf(this.#kind);
    this.#run = 0;
  }

  /** Work of this make-up is a little more usual now. The scale stays what it was. @returns `longerLog` of usual work. */
  #meet({ mainMs, otherMs }: Work, weight: number, ratios: readonly number[]): number {
    const before = longerLog(this.#usual, ratios);
    const usual = this.#usual.otherMs;
    for (let i = 0; i < usual.length; i++) {
      usual[i] = (usual[i] as number) * (1 - weight) + (weight * (otherMs[i] as number)) / mainMs;
    }
    const after = longerLog(this.#usual, ratios);
    this.#level.shift(after - before);
    return after;
  }

  #regress(work: Work, scaleLog: number, noise: number, means: readonly number[], ratios: readonly number[]): void {
    const residual = scaleLog + longerLog(this.#center, ratios) - this.#fit.value(0);
    // As the quantile has it: a wait that adds to some of the work says nothing of what the work itself takes.
    const { quantile } = this.#kind;
    const pull = 2 * (residual > 0 ? quantile : 1 - quantile);
    this.#fit.observe(this.#slopesOf(work, ratios), pull * residual, noise, this.#expectedFrom(means));
  }
}

/** How much longer such work takes because of these ratios, as a logarithm. */
function longerLog(work: Work, ratios: readonly number[]): number {
  let priorMs = work.mainMs;
  for (let i = 0; i < work.otherMs.length; i++) priorMs += work.otherMs[i] as number;
  return Math.log(workMs(work, ratios) / priorMs);
}

function fitOf({ spreads }: WorkKind): KalmanFit {
  return new KalmanFit([LEVEL, ...spreads.map((spread) => ({ spread, bound: MAX_RATIO_LOG }))]);
}

/** The level is any. */
const LEVEL = { spread: 100, bound: Number.POSITIVE_INFINITY };

/** Twenty times either way: no two models and machines differ by that much in how their costs stand to each other. */
const MAX_RATIO_LOG = 3;

/** Samples that usual work is the mean of, once there are as many. */
const USUAL_SAMPLES = 64;

/** One sample pulls the level no further than so many usual ones. */
const MAX_WEIGHT = 4;

/**
 * Half of the prompts behind a proxy that coalesces are 20 % late and more; 16 of them in a row are one in 65,000.
 * Decoding is learned four times a second: a stall must last for four to be taken for another engine.
 */
const FAR_OFF = Math.log(1.2);
const FAR_OFF_RUN = 16;
