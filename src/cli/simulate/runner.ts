import {
  exchangeWork,
  parseFleet,
  parseFleetEvents,
  policySetup,
  type ReplicaOptions,
  type Simulation,
  scaleRate,
  simulate,
  type Workload,
} from "../../sim/index.ts";
import { readInput } from "./read-input.ts";
import type { ReplicaSettings, RunSettings, RunSpec } from "./settings.ts";

/** Runs simulations one after the other, and keeps the workload between those that share it. */
export class Runner {
  readonly #settings: RunSettings;
  #workload: Workload | undefined;
  #seed = 0;

  constructor(settings: RunSettings) {
    this.#settings = settings;
  }

  /** The workload at its own rate. @throws WorkloadError, or what the file system says. */
  workload(seed: number): Workload {
    if (this.#workload === undefined || this.#seed !== seed) {
      this.#workload = readInput(this.#settings.input, seed);
      this.#seed = seed;
    }
    return this.#workload;
  }

  /** @param onProgress Told now and then which share of the run is done, 0 to 1. */
  run({ policy, seed, rate, fleet: fleetText }: RunSpec, onProgress: (share: number) => void): Simulation {
    const { events: eventsText, replicas, sendDelayMs } = this.#settings;
    const fleet = parseFleet(fleetText);
    const events = parseFleetEvents(eventsText, fleet);
    const joining = events.flatMap((event) => (event.kind === "join" ? event.engines : []));
    const workload = this.workload(seed);
    return simulate({
      workload: rate === 1 ? workload : scaleRate(workload, rate),
      fleet,
      events,
      ...policySetup(policy, [...fleet.engines, ...joining]),
      seed,
      replicas: replicaOptions(replicas),
      ...(sendDelayMs === undefined ? {} : { sendDelayMs }),
      wallClockMs: () => performance.now(),
      onProgress,
    });
  }
}

function replicaOptions({ count, dealing, exchangeMs }: ReplicaSettings): ReplicaOptions {
  return { count, dealing, ...(exchangeMs === undefined ? {} : { replication: exchangeWork(exchangeMs) }) };
}
