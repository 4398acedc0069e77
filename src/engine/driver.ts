import type { EngineSignals } from "../core/index.ts";
import { EngineModel, type EngineProfile, type EngineRequest } from "../sim/index.ts";

/** A request that is told its own progress. */
export interface EngineJob extends EngineRequest {
  prefilled(cachedTokens: number): void;
  /** Output token number `generatedTokens`, from 1. */
  token(generatedTokens: number): void;
  finished(): void;
}

/** Drives the engine model in real time: one timer, set to the model's next event. */
export class EngineDriver {
  readonly #model: EngineModel<EngineJob>;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  /** Model time is process time minus all the time it was frozen. */
  #frozenMs = 0;
  /** Process time at which the model thaws; undefined: it is not frozen. */
  #thawAtMs: number | undefined;
  #frozenSinceMs = 0;

  constructor(profile: EngineProfile, speed: number) {
    this.#model = new EngineModel<EngineJob>(
      { profile, speed },
      {
        prefilled: (job, cachedTokens) => job.prefilled(cachedTokens),
        token: (job, generatedTokens) => job.token(generatedTokens),
        finished: (job) => job.finished(),
      },
    );
  }

  /** KV blocks of the engine. */
  get totalBlocks(): number {
    return this.#model.totalBlocks;
  }

  submit(job: EngineJob): void {
    if (this.#isStopped) return;
    this.#model.submit(job, this.#now());
    this.#schedule();
  }

  /** False: it was not running any more. */
  abort(job: EngineJob): boolean {
    return this.#model.abort(job, this.#now());
  }

  /** Nothing happens inside the engine for `durationMs`; it then goes on where it stood. */
  freeze(durationMs: number): void {
    const processNow = performance.now();
    if (this.#thawAtMs === undefined) this.#frozenSinceMs = processNow;
    this.#thawAtMs = Math.max(this.#thawAtMs ?? 0, processNow + durationMs);
    this.#schedule();
  }

  signals(): EngineSignals {
    return this.#model.signals(this.#now());
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #now(): number {
    const processNow = performance.now();
    if (this.#thawAtMs !== undefined) {
      if (processNow < this.#thawAtMs) return this.#frozenSinceMs - this.#frozenMs;
      this.#frozenMs += this.#thawAtMs - this.#frozenSinceMs;
      this.#thawAtMs = undefined;
    }
    return processNow - this.#frozenMs;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    const nowMs = this.#now();
    const nextMs =
      this.#thawAtMs === undefined ? this.#model.nextEventMs() : nowMs + (this.#thawAtMs - performance.now());
    if (nextMs === undefined) return;
    // Timers have whole milliseconds: round up, since waking early would do nothing. The model keeps exact time.
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, Math.ceil(nextMs - nowMs)));
  }

  #wake(): void {
    this.#model.advance(this.#now());
    this.#schedule();
  }
}
