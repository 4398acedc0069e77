import { SlotList, type Slotted } from "../core/index.ts";
import type { Clock } from "../runtime/index.ts";

/** One deadline that moves with every sign of progress: moving it is storing a number. */
export abstract class Watched implements Slotted {
  /** On the watchdog's clock; infinity: not watched at present. */
  deadlineMs: number = Number.POSITIVE_INFINITY;
  slot = -1;

  /** Asked at every sweep: whether it is over. */
  isDue(nowMs: number): boolean {
    return this.deadlineMs <= nowMs;
  }

  /** Called once, after which it is no longer watched. */
  abstract expired(): void;
}

/** A moment at which something is done, unless it is lifted before. */
export class Deadline extends Watched {
  readonly #watchdog: Watchdog;
  readonly #then: () => void;

  constructor(watchdog: Watchdog, then: () => void) {
    super();
    this.#watchdog = watchdog;
    this.#then = then;
  }

  set(atMs: number): void {
    this.deadlineMs = atMs;
    if (this.slot === -1) this.#watchdog.watch(this);
  }

  /** Does nothing when it is not set. */
  lift(): void {
    this.#watchdog.unwatch(this);
  }

  expired(): void {
    this.#then();
  }
}

/**
 * Watches the deadlines of everything under way with one timer. A timer each would have to be made
 * anew at every chunk; here a late chunk is noticed at most `SWEEP_MS` late, which no limit cares about.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #watched = new SlotList<Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  watch(watched: Watched): void {
    this.#watched.add(watched);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  unwatch(watched: Watched): void {
    this.#watched.remove(watched);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sweep(): void {
    const nowMs = this.#clock.nowMs();
    for (const watched of this.#watched.items()) {
      // One that expires may end another, which is then no longer in the list.
      if (watched.slot === -1 || !watched.isDue(nowMs)) continue;
      this.#watched.remove(watched);
      watched.expired();
    }
  }
}

const SWEEP_MS = 100;
