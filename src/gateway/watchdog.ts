import type { Clock } from "../runtime/index.ts";

/** One deadline that moves with every sign of progress: moving it is storing a number. */
export interface Watched {
  /** On the watchdog's clock; infinity: not watched at present. */
  deadlineMs: number;
  /** Called once, after which it is no longer watched. */
  expired(): void;
}

/**
 * Watches the deadlines of all running attempts with one timer. A timer each would have to be made
 * anew at every chunk; here a late chunk is noticed at most `SWEEP_MS` late, which no limit cares about.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  watch(watched: Watched): void {
    this.#watched.add(watched);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  unwatch(watched: Watched): void {
    this.#watched.delete(watched);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#watched.clear();
  }

  #sweep(): void {
    const nowMs = this.#clock.nowMs();
    for (const watched of this.#watched) {
      if (watched.deadlineMs > nowMs) continue;
      this.#watched.delete(watched);
      watched.expired();
    }
  }
}

const SWEEP_MS = 100;
