import type { SimulationResult, Slo } from "../result.ts";
import type { SweepPoint } from "./sweep.ts";

/** Everything a report is made of: one workload on one fleet, under one policy or several. */
export interface Report {
  /** The command line that makes this report again. */
  readonly command: string;
  /** What was simulated, as it is shown: name of a setting and its value. */
  readonly settings: Readonly<Record<string, string>>;
  readonly slo: Slo;
  /** One run per policy. */
  readonly results: readonly SimulationResult[];
  /** Policy that the others are compared to; undefined: no comparison. */
  readonly base: string | undefined;
  /** Of one variable; empty: nothing was swept. */
  readonly sweep: readonly SweepPoint[];
}
