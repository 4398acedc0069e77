import type { EngineSignals } from "../core/index.ts";
import type { EngineModel } from "./engine-model.ts";

/** Virtual time, in ms from the start; moved by the simulation alone. */
export interface VirtualClock {
  nowMs: number;
}

type ReportingEngine = Pick<EngineModel, "signals" | "capacityTokens">;

/** What an engine reports, read without delay: whoever keeps it sees every change. */
export class LiveSignals implements EngineSignals {
  readonly kvCapacityTokens: number;
  readonly kvBlockTokens: number;
  readonly maxRunningRequests: undefined;
  readonly #engine: ReportingEngine;
  readonly #clock: Readonly<VirtualClock>;

  constructor(engine: ReportingEngine, blockTokens: number, clock: Readonly<VirtualClock>) {
    this.#engine = engine;
    this.#clock = clock;
    this.kvCapacityTokens = engine.capacityTokens;
    this.kvBlockTokens = blockTokens;
  }

  get observedAtMs(): number {
    return this.#clock.nowMs;
  }

  get runningRequests(): number | undefined {
    return this.#now.runningRequests;
  }

  get waitingRequests(): number | undefined {
    return this.#now.waitingRequests;
  }

  get kvUsedRatio(): number | undefined {
    return this.#now.kvUsedRatio;
  }

  get promptTokensTotal(): number | undefined {
    return this.#now.promptTokensTotal;
  }

  get generatedTokensTotal(): number | undefined {
    return this.#now.generatedTokensTotal;
  }

  get prefixHitTokensTotal(): number | undefined {
    return this.#now.prefixHitTokensTotal;
  }

  get prefixQueryTokensTotal(): number | undefined {
    return this.#now.prefixQueryTokensTotal;
  }

  get preemptionsTotal(): number | undefined {
    return this.#now.preemptionsTotal;
  }

  get #now(): EngineSignals {
    return this.#engine.signals(this.#clock.nowMs);
  }
}
