import type { Peer } from "../peer.ts";
import type { Bench } from "../run.ts";
import type { Verdict } from "../verdict.ts";

/** What a measure is asked for. */
export interface MeasurePlan {
  readonly bench: Bench;
  /** Who is measured side by side, where there is somebody to compare with. */
  readonly peers: readonly Peer[];
  /** Peers that only the path is measured of: they are too slow for the rest. */
  readonly recordPeers: readonly Peer[];
  readonly rounds: number;
  /** Requests that the memory measure sends to each. */
  readonly memoryRequests: number;
}

/** What a measure says in the end. */
export interface Measured {
  readonly verdicts: readonly Verdict[];
  /** For people: what was done, and the figures. */
  readonly text: string;
  /** The same for programs: goes through JSON. */
  readonly result: object;
  /** Whether something could not be measured that should have been. */
  readonly hasFailed: boolean;
}

/** A row, or a few, of the table of targets. One file each. */
export interface Measure {
  readonly name: string;
  run(plan: MeasurePlan): Promise<Measured>;
}

/** The peer that is ours: the verdicts are about it. */
export const OURS = "evenkeel";

/** Whether a figure is at most `most`, said with its unit. @param value Undefined or NaN: it was not measured. */
export function verdictOf(measure: string, value: number | undefined, most: number, unit: string): Verdict {
  const isKnown = value !== undefined && Number.isFinite(value);
  return {
    measure,
    target: `at most ${most} ${unit}`,
    measured: isKnown ? `${Number(value.toPrecision(3))} ${unit}` : "-",
    isMet: isKnown ? value <= most : undefined,
  };
}
