import type { Clock } from "../runtime/index.ts";

/** One deadline that moves with every sign of progress: moving it is storing a number. */
export abstract class Watched {
  /** On the watchdog's clock; infinity: not watched at present. */
  deadlineMs: number = Number.POSITIVE_INFINITY;
  /** The watchdog's own: where it keeps this one; -1: nowhere. */
  watchSlot = -1;
  /** Called once, after which it is no longer watched. */
  abstract expired(): void;
}

/**
 * Watches the deadlines of everything under way with one timer. A timer each would have to be made
 * anew at every chunk; here a late chunk is noticed at most `SWEEP_MS` late, which no limit cares about.
 */
export class Watchdog {
  readonly #clock: Clock;
  /**
   * In no order, without gaps. Not a Set: one that entries pass through quickly is copied again and again, and
   * each dead copy keeps its entries, with their request bodies, from the young collection.
   */
  readonly #watched: Watched[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  watch(watched: Watched): void {
    watched.watchSlot = this.#watched.push(watched) - 1;
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  unwatch(watched: Watched): void {
    const { watchSlot } = watched;
    if (watchSlot === -1) return;
    watched.watchSlot = -1;
    const last = this.#watched.pop() as Watched;
    if (last === watched) return;
    this.#watched[watchSlot] = last;
    last.watchSlot = watchSlot;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sweep(): void {
    const nowMs = this.#clock.nowMs();
    const late = this.#watched.filter(({ deadlineMs }) => deadlineMs <= nowMs);
    for (const watched of late) {
      if (watched.watchSlot === -1) continue;
      this.unwatch(watched);
      watched.expired();
    }
  }
}

const SWEEP_MS = 100;
