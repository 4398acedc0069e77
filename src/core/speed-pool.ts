import { QuantileTracker } from "./quantile-tracker.ts";

/** Which of the two factors. */
export type Scale = "decode" | "prefill";

/** The two factors that are learned of one endpoint. */
export class SpeedScales {
  readonly #trackers: Record<Scale, QuantileTracker> = { decode: trackerOf("decode"), prefill: trackerOf("prefill") };

  get decode(): QuantileTracker {
    return this.#trackers.decode;
  }

  get prefill(): QuantileTracker {
    return this.#trackers.prefill;
  }

  /** Observations of both. */
  get samples(): number {
    return this.decode.samples + this.prefill.samples;
  }

  /** Begins anew. */
  forget(scale: Scale): void {
    this.#trackers[scale] = trackerOf(scale);
  }
}

function trackerOf(scale: Scale): QuantileTracker {
  return new QuantileTracker(QUANTILES[scale]);
}

/** What the members' values come to at a version of the pool; logarithms. */
interface Summary {
  readonly version: number;
  readonly decodeLog: number;
  readonly fastestDecodeLog: number;
  readonly prefillOverDecodeLog: number;
}

/**
 * What the endpoints of one pool have in common. Each that was seen counts the same: by samples, the busiest
 * would speak for all, and in a mixed fleet every other be believed to be more like it than it is.
 */
export class SpeedPool {
  readonly #members = new Set<SpeedScales>();
  readonly #samples: Record<Scale, number> = { decode: 0, prefill: 0 };
  #version = 0;
  #summary: Summary = { version: 0, decodeLog: 0, fastestDecodeLog: 0, prefillOverDecodeLog: 0 };

  /** Endpoints; one where all have left, whose last requests may still run. */
  get size(): number {
    return Math.max(1, this.#members.size);
  }

  /** Changes with every observation and every change of membership. */
  get version(): number {
    return this.#version;
  }

  /** Mean of its endpoints' decode scales, in the logarithm; 0 before any was seen. */
  get decodeLog(): number {
    return this.#upToDate.decodeLog;
  }

  /** Its fastest endpoint's; 0 before any was seen. */
  get fastestDecodeLog(): number {
    return this.#upToDate.fastestDecodeLog;
  }

  /** How much slower prefill is than decoding, against the prior: the mean over its endpoints; 0 before any was seen. */
  get prefillOverDecodeLog(): number {
    return this.#upToDate.prefillOverDecodeLog;
  }

  /** Observations ever, also of endpoints that left. */
  samples(scale: Scale): number {
    return this.#samples[scale];
  }

  observed(scale: Scale): void {
    this.#samples[scale]++;
    this.#version++;
  }

  add(scales: SpeedScales): void {
    this.#members.add(scales);
    this.#version++;
  }

  remove(scales: SpeedScales): void {
    this.#members.delete(scales);
    this.#version++;
  }

  /** Where nobody that was seen is left, what was believed last still holds: replacements are like those they replace. */
  get #upToDate(): Summary {
    if (this.#summary.version === this.#version) return this.#summary;
    const members = [...this.#members];
    const decodeLogs = members.filter(({ decode }) => decode.samples > 0).map(({ decode }) => decode.log);
    const decodeLog = mean(decodeLogs) ?? this.#summary.decodeLog;
    const ratioLogs = members
      .filter(({ prefill }) => prefill.samples > 0)
      .map(({ prefill, decode }) => prefill.log - (decode.samples > 0 ? decode.log : decodeLog));
    this.#summary = {
      version: this.#version,
      decodeLog,
      fastestDecodeLog: decodeLogs.length > 0 ? Math.min(...decodeLogs) : this.#summary.fastestDecodeLog,
      prefillOverDecodeLog: mean(ratioLogs) ?? this.#summary.prefillOverDecodeLog,
    };
    return this.#summary;
  }
}

/** Undefined: of nothing. */
function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

const QUANTILES: Readonly<Record<Scale, number>> = {
  /** The median: gaps between tokens are late as often as early. */
  decode: 0.5,
  /** Below the median: a wait for a slot or for others' prefill only ever adds to a first token's time. */
  prefill: 0.35,
};
