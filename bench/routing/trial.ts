import {
  exchangeWork,
  type FleetSpec,
  parseFleet,
  policySetup,
  type ReplicaOptions,
  simulate,
  summarize,
  type Workload,
} from "../../src/sim/index.ts";
import { CELLS, type Cell, keyOf } from "./cells.ts";
import { type Figures, figuresOf } from "./contest.ts";
import { DISTURBANCES } from "./disturbed.ts";

/** One policy on one cell: plain data, for another process. */
export interface Trial {
  /** See `keyOf`. */
  readonly cell: string;
  readonly seed: number;
  readonly policy: string;
  /** It is told the cell's limit of time per output token. */
  readonly hasTpotTarget?: boolean;
  /** Name of what it is told wrong; absent: nothing. */
  readonly disturbance?: string;
  /** Absent: one balancer. */
  readonly replicas?: Pick<ReplicaOptions, "count"> & {
    /** Absent: they know nothing of one another. */
    readonly exchangeMs?: number;
  };
}

/** What came of it. */
export interface TrialResult {
  readonly figures: Figures;
  readonly requests: number;
  readonly ended: number;
  /** Time that the simulation took, without reading the trace. */
  readonly wallMs: number;
  /** Processor time of all of it, which others on the machine do not lengthen. */
  readonly cpuMs: number;
}

/** Runs trials one after the other, and keeps the workload between those that share it. */
export class TrialRunner {
  readonly #traces: string;
  #key: string | undefined;
  #workload: Workload | undefined;

  /** @param traces The folder of traces. */
  constructor(traces: string) {
    this.#traces = traces;
  }

  run(trial: Trial): TrialResult {
    const cell = findCell(trial.cell);
    const usedBefore = process.cpuUsage();
    const result = simulate({
      workload: this.#workloadOf(cell, trial),
      ...entryOf(cell, trial),
      seed: trial.seed,
      wallClockMs: () => performance.now(),
    });
    const summary = summarize(result, cell.slo);
    const { user, system } = process.cpuUsage(usedBefore);
    return {
      figures: figuresOf(summary),
      requests: summary.requests,
      ended: summary.ended,
      wallMs: summary.wallMs,
      cpuMs: (user + system) / 1000,
    };
  }

  #workloadOf(cell: Cell, trial: Trial): Workload {
    const key = workloadKey(trial);
    if (this.#workload === undefined || this.#key !== key) {
      this.#workload = cell.workload(this.#traces, trial.seed);
      this.#key = key;
    }
    return this.#workload;
  }
}

/** Equal for trials that send the same requests. */
export function workloadKey({ cell, seed }: Trial): string {
  return `${cell} ${seed}`;
}

function findCell(key: string): Cell {
  const cell = CELLS.find((each) => keyOf(each) === key);
  if (cell === undefined) throw new Error(`no cell "${key}"`);
  return cell;
}

/** Fleet, policy and balancers, with what is told wrong of them. */
function entryOf(cell: Cell, { policy, hasTpotTarget = false, disturbance: name, replicas }: Trial) {
  const fleet: FleetSpec = parseFleet(cell.fleet);
  const disturbance = DISTURBANCES.find((each) => each.name === name);
  const wrongPolicy = disturbance?.policy?.();
  return {
    fleet: disturbance?.fleet?.(fleet) ?? fleet,
    ...policySetup(policy, fleet.engines),
    ...(wrongPolicy && { policy: wrongPolicy }),
    ...(hasTpotTarget && { policyOptions: { tpotTargetMs: cell.slo.tpotMs } }),
    ...(replicas && { replicas: replicaOptions(replicas) }),
  };
}

function replicaOptions({ count, exchangeMs }: NonNullable<Trial["replicas"]>): ReplicaOptions {
  return { count, dealing: "in_turn", ...(exchangeMs === undefined ? {} : { replication: exchangeWork(exchangeMs) }) };
}
