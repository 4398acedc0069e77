import type { ReplicaOptions, Slo, SweepSpec } from "../../sim/index.ts";

/** Which requests to take from which trace. */
export interface InputSettings {
  /** Path of a file, or the specification of a synthetic workload. */
  readonly trace: string;
  /** Part of the trace, in its own time; undefined: from its start, to its end. */
  readonly startMs: number | undefined;
  readonly durationMs: number | undefined;
  /** So many arrivals at most; undefined: all. */
  readonly requests: number | undefined;
  /** Of a file of sessions: those to take; undefined: all. */
  readonly sessions: { readonly from: number; readonly to: number } | undefined;
  /** Mean time between starts of sessions; undefined: the reader's default. */
  readonly sessionGapMs: number | undefined;
  /** Of a recording: the model whose requests to take; undefined: all. */
  readonly model: string | undefined;
}

/** What all runs of a command have in common. Plain data: it goes to other processes. */
export interface RunSettings {
  readonly input: InputSettings;
  /** As it was written; empty: the fleet stays as it is. */
  readonly events: string;
  readonly replicas: ReplicaSettings;
  /** Undefined: the simulator's default. */
  readonly sendDelayMs: number | undefined;
}

/** The balancers in front of the fleet. */
export interface ReplicaSettings extends Pick<ReplicaOptions, "count" | "dealing"> {
  /** Between two times that they tell each other of their work; undefined: they know nothing of one another. */
  readonly exchangeMs: number | undefined;
}

/** One simulation. */
export interface RunSpec {
  readonly policy: string;
  readonly seed: number;
  /** Times the workload's own rate. */
  readonly rate: number;
  readonly fleet: string;
}

/** Everything a command line asks for. */
export interface SimulateSettings {
  readonly runs: RunSettings;
  readonly policies: readonly string[];
  readonly fleet: string;
  readonly rate: number;
  readonly seeds: readonly number[];
  readonly slo: Slo;
  readonly sweep: SweepSpec | undefined;
  /** Policy that the others are compared to; undefined: no comparison. */
  readonly base: string | undefined;
  /** Simulations at the same time. */
  readonly jobs: number;
  /** The command line that does this again. */
  readonly command: string;
}
