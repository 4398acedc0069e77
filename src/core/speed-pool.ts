import { ratiosOf, WorkFit, type WorkKind } from "./work-fit.ts";

/** Which kind of work. */
export type Scale = "decode" | "prefill";

/** How each kind is learned; what its parts are, `EngineSpeed` says. */
const KINDS: Readonly<Record<Scale, WorkKind>> = {
  /**
   * A step's fixed part, and beside it the context tokens and the sequences. The median: gaps between tokens are late
   * as often as early. Against the fixed part the context is 1.2 times dearer to 4 times cheaper than in the prior on
   * the models and machines that were measured, sequences 1.5 times cheaper to 3 times dearer.
   */
  decode: { quantile: 0.5, spreads: [1, 0.7] },
  /**
   * Tokens, and beside them the attention pairs, which are 1.3 times dearer to 3 times cheaper. Well below the median:
   * a wait for a slot, for others' prefill or for a proxy that coalesces only ever adds to a first token's time.
   */
  prefill: { quantile: 0.25, spreads: [0.7] },
};

/** What is learned of one endpoint. */
export class SpeedScales {
  readonly #fits: Record<Scale, WorkFit> = { decode: new WorkFit(KINDS.decode), prefill: new WorkFit(KINDS.prefill) };

  get decode(): WorkFit {
    return this.#fits.decode;
  }

  get prefill(): WorkFit {
    return this.#fits.prefill;
  }

  /** Observations of both. */
  get samples(): number {
    return this.decode.samples + this.prefill.samples;
  }

  /** Begins anew. */
  forget(scale: Scale): void {
    this.#fits[scale] = new WorkFit(KINDS[scale]);
  }
}

/** One endpoint, as its pool knows it. */
export interface PooledSpeed {
  readonly scales: SpeedScales;
  /** Brings up to date what is believed of it. */
  update(): void;
}

/** What the members' values come to; logarithms. */
interface Summary {
  readonly decodeLog: number;
  readonly fastestDecodeLog: number;
  readonly prefillOverDecodeLog: number;
  readonly ratioLogs: Readonly<Record<Scale, readonly number[]>>;
}

/**
 * What the endpoints of one pool have in common. Each that was seen counts the same: by samples, the busiest
 * would speak for all, and in a mixed fleet every other be believed to be more like it than it is.
 */
export class SpeedPool {
  readonly #members = new Set<PooledSpeed>();
  /** Those of which something of their own has changed since all were settled. */
  readonly #unsettled = new Set<PooledSpeed>();
  #settledVersion = 0;
  readonly #samples: Record<Scale, number> = { decode: 0, prefill: 0 };
  /** Observations since the last summary. */
  #unsummed = 0;
  /** The summary is to be made anew when somebody asks. */
  #isStale = false;
  #version = 0;
  #summary: Summary = {
    decodeLog: 0,
    fastestDecodeLog: 0,
    prefillOverDecodeLog: 0,
    ratioLogs: { decode: KINDS.decode.spreads.map(() => 0), prefill: KINDS.prefill.spreads.map(() => 0) },
  };

  /** Endpoints; one where all have left, whose last requests may still run. */
  get size(): number {
    return Math.max(1, this.#members.size);
  }

  /**
   * Changes whenever anything below may have. Of the first observations each counts at once; later one of them moves
   * next to nothing, and all endpoints are believed anew only when as many were made as there are endpoints.
   */
  get version(): number {
    return this.#version;
  }

  /** Mean of its endpoints' decode scales, in the logarithm; 0 before any was seen. */
  get decodeLog(): number {
    return this.#upToDate().decodeLog;
  }

  /** Its fastest endpoint's; 0 before any was seen. */
  get fastestDecodeLog(): number {
    return this.#upToDate().fastestDecodeLog;
  }

  /** How much slower prefill is than decoding, against the prior: the mean over its endpoints; 0 before any was seen. */
  get prefillOverDecodeLog(): number {
    return this.#upToDate().prefillOverDecodeLog;
  }

  /** How dear such work's other parts are against its main one, by what its endpoints know of that: see `WorkFit`. */
  ratioLogs(scale: Scale): readonly number[] {
    return this.#upToDate().ratioLogs[scale];
  }

  /** Observations ever, also of endpoints that left. */
  samples(scale: Scale): number {
    return this.#samples[scale];
  }

  /**
   * Brings up to date what is believed of its endpoints, before a decision that reads it of all of them. Mostly little is
   * to be done: one by one each would have to be asked.
   */
  settle(): void {
    if (this.#settledVersion !== this.#version) {
      this.#settledVersion = this.#version;
      for (const member of this.#members) member.update();
    } else if (this.#unsettled.size > 0) {
      for (const member of this.#unsettled) member.update();
    } else {
      return;
    }
    this.#unsettled.clear();
  }

  /** Something of the endpoint's own has changed. */
  unsettle(member: PooledSpeed): void {
    this.#unsettled.add(member);
  }

  observed(member: PooledSpeed, scale: Scale): void {
    this.unsettle(member);
    this.#samples[scale]++;
    this.#unsummed++;
    const samples = this.#samples.decode + this.#samples.prefill;
    if (this.#unsummed > Math.min(this.size - 1, samples / MANY)) this.#changed();
  }

  add(member: PooledSpeed): void {
    this.#members.add(member);
    this.#changed();
  }

  remove(member: PooledSpeed): void {
    this.#members.delete(member);
    this.#unsettled.delete(member);
    this.#changed();
  }

  #changed(): void {
    this.#isStale = true;
    this.#version++;
  }

  #upToDate(): Summary {
    if (this.#isStale) this.#summary = this.#sumUp(this.#summary);
    return this.#summary;
  }

  /** Where nobody that was seen is left, what was believed last still holds: replacements are like those they replace. */
  #sumUp(last: Summary): Summary {
    this.#unsummed = 0;
    this.#isStale = false;
    const members = [...this.#members].map(({ scales }) => scales);
    const decodes = members.map(({ decode }) => decode).filter(isSeen);
    const prefills = members.map(({ prefill }) => prefill).filter(isSeen);
    const ratioLogs = {
      decode: meanRatioLogs("decode", decodes) ?? last.ratioLogs.decode,
      prefill: meanRatioLogs("prefill", prefills) ?? last.ratioLogs.prefill,
    };
    /** Undefined: not seen. */
    const scaleLog = (scale: Scale, fit: WorkFit): number | undefined =>
      isSeen(fit) ? fit.scaleLog(ratiosOf(fit.ratioLogs(ratioLogs[scale]))) : undefined;
    const logs = members.map(({ decode, prefill }) => ({
      decode: scaleLog("decode", decode),
      prefill: scaleLog("prefill", prefill),
    }));
    const decodeLogs = logs.map(({ decode }) => decode).filter(isDefined);
    const decodeLog = mean(decodeLogs) ?? last.decodeLog;
    const prefillOverDecodeLogs = logs
      .map(({ decode = decodeLog, prefill }) => (prefill === undefined ? undefined : prefill - decode))
      .filter(isDefined);
    return {
      decodeLog,
      fastestDecodeLog: decodeLogs.length > 0 ? Math.min(...decodeLogs) : last.fastestDecodeLog,
      prefillOverDecodeLog: mean(prefillOverDecodeLogs) ?? last.prefillOverDecodeLog,
      ratioLogs,
    };
  }
}

function isSeen({ samples }: WorkFit): boolean {
  return samples > 0;
}

function isDefined(value: number | undefined): value is number {
  return value !== undefined;
}

/** Undefined: of nothing. */
function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** What they know of the ratios, each by how much it knows. Undefined: there are none. */
function meanRatioLogs(scale: Scale, fits: readonly WorkFit[]): number[] | undefined {
  if (fits.length === 0) return undefined;
  return KINDS[scale].spreads.map((_, ratio) => {
    let sum = 0;
    let known = NEGLIGIBLE;
    for (const fit of fits) {
      // Shrunk by what it does not know, so weighed by what it does.
      sum += fit.ownRatioLog(ratio);
      known += fit.knownOfRatio(ratio);
    }
    return sum / known;
  });
}

/** Of so many observations, one more makes next to no difference to the mean of all. */
const MANY = 64;

/** Knowledge of a ratio that does not count: what it rests on is a sample or two. */
const NEGLIGIBLE = 0.1;
