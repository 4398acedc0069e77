import { type Endpoint, type EngineSignals, endpoint } from "../core/index.ts";
import { EngineModel, type EngineObserver } from "./engine-model.ts";
import { paceOf } from "./engine-pace.ts";
import type { EngineSpec } from "./fleet-spec.ts";
import type { Job } from "./job.ts";
import { LiveSignals, type VirtualClock } from "./live-signals.ts";
import type { EndpointSample } from "./result.ts";

/** Where an endpoint's requests are, as its streams tell. */
export type ProgressVisitor = (job: Job, generatedTokens: number) => void;

/** An engine of a fleet, as a balancer has it for an endpoint: it can die and come back. */
export class SimulatedEndpoint {
  readonly facts: Endpoint;
  readonly signals: EngineSignals;
  /** Where its events stand on the agenda. */
  readonly source: number;
  isUp = true;
  readonly #engine: EngineModel<Job>;
  #progressDueMs = 0;

  constructor(
    spec: EngineSpec,
    source: number,
    blockTokens: number,
    clock: Readonly<VirtualClock>,
    observer: EngineObserver<Job>,
  ) {
    const { id, profile, speed, configuredKvTokens } = spec;
    this.source = source;
    // Only the weighted policies look at the weight.
    this.facts = endpoint({ id, weight: paceOf(spec), kvCapacityTokens: configuredKvTokens });
    this.#engine = new EngineModel({ profile, speed, blockTokens }, observer);
    this.signals = new LiveSignals(this.#engine, blockTokens, clock);
  }

  get id(): string {
    return this.facts.id;
  }

  /** Prompt and answer of one request must fit, or it could never end. */
  get capacityTokens(): number {
    return this.#engine.capacityTokens;
  }

  /** When it is to `move` next; infinite: never, the engine is empty. */
  get nextEventMs(): number {
    const engineMs = this.#engine.nextEventMs();
    if (engineMs === undefined) return Number.POSITIVE_INFINITY;
    return this.#engine.runningRequests === 0 ? engineMs : Math.min(engineMs, this.#progressDueMs);
  }

  submit(job: Job, nowMs: number): void {
    this.#engine.submit(job, nowMs);
  }

  /** Does what is due, and tells `visit` now and then how far the running requests are. */
  move(nowMs: number, visit: ProgressVisitor): void {
    this.#engine.advance(nowMs);
    if (nowMs < this.#progressDueMs) return;
    this.#progressDueMs = nowMs + PROGRESS_INTERVAL_MS;
    this.#engine.forEachRunning(nowMs, visit);
  }

  /** Dies at once and loses its cache. @returns what was there, in order of submission. */
  fail(nowMs: number): readonly Job[] {
    this.isUp = false;
    return this.#engine.failAll(nowMs);
  }

  /** @param held Requests that balancers hold for it. */
  sample(nowMs: number, held: number): EndpointSample {
    const { runningRequests = 0, waitingRequests = 0, kvUsedRatio = 0 } = this.#engine.signals(nowMs);
    return { running: runningRequests, waiting: waitingRequests, held, kvUsedRatio };
  }

  preemptions(nowMs: number): number {
    return this.#engine.signals(nowMs).preemptionsTotal ?? 0;
  }
}

/**
 * Between two looks at the streams: 10 to 30 tokens of most engines. A gateway sees every one, but what a balancer
 * makes of them changes little in that time.
 */
const PROGRESS_INTERVAL_MS = 250;
