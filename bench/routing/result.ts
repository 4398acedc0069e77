import type { Host } from "../support/host.ts";
import type { Cell } from "./cells.ts";
import type { Contender, Figures } from "./contest.ts";
import type { Verdict } from "./targets.ts";

/** Our policy in a cell. */
export interface OwnResult {
  readonly figures: Figures;
  /** With the cell's limit of time per output token declared; undefined: no target asks for it. */
  readonly withTpotTarget: Figures | undefined;
}

/** One of the things our policy is told wrong, in one cell, on the first seed. */
export interface DisturbedResult {
  readonly disturbance: string;
  readonly e2eMs: number;
  /** Ours over the best peer's. */
  readonly e2eRatio: number;
  readonly isMet: boolean;
}

/** Several balancers in one cell. */
export interface ReplicatedResult {
  readonly count: number;
  readonly exchangeMs: number;
  /** Share of mean E2E that is lost against one balancer: 0.03 is 3 %. */
  readonly e2eLoss: number;
  /** The same where they know nothing of one another. */
  readonly aloneE2eLoss: number;
  readonly isMet: boolean;
}

/** Everything about one cell. */
export interface CellResult {
  readonly cell: Pick<Cell, "name" | "fleet" | "slo" | "use">;
  readonly seeds: number;
  readonly ours: OwnResult;
  /** Those that ran all seeds, with their means. */
  readonly contenders: readonly Contender[];
  /** Those that ran the first seed alone, far from the best. */
  readonly others: readonly Contender[];
  readonly verdicts: readonly Verdict[];
  /** Undefined: our policy is not ahead of every peer in E2E where it is told the truth. */
  readonly disturbed: readonly DisturbedResult[] | undefined;
  /** Undefined: not tried here. */
  readonly replicated: ReplicatedResult | undefined;
  /** Requests that did not end, of those that arrived, by policy; only where there are more than of ours. */
  readonly unfinished: Readonly<Record<string, number>>;
}

/** How fast the simulator was, per process. */
export interface Speed {
  readonly runs: number;
  readonly requests: number;
  readonly wallMs: number;
  readonly requestsPerSecond: number;
  /** Processor time of all runs, with reading the traces. */
  readonly cpuMs: number;
}

/** The whole run. */
export interface RoutingResult {
  readonly host: Host;
  readonly seeds: number;
  readonly cells: readonly CellResult[];
  readonly speed: Speed;
  /** Real time of the whole run. */
  readonly wallMs: number;
}
