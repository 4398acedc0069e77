import type { Routed } from "../../core/index.ts";
import type { Clock } from "../../runtime/index.ts";
import type { HedgeResult } from "../admin/failover-metrics.ts";
import type { Attempt } from "../attempt.ts";
import type { AttemptEnd, AttemptHost, FailedAttempt } from "../attempt-terms.ts";
import { Deadline, type Watchdog } from "../watchdog.ts";
import type { Failure } from "./failure.ts";

/** How a race ended: by the end of its winner or, if nothing reached the client, of the last that failed. */
export type RaceEnd =
  | Exclude<AttemptEnd, { kind: "failed" | "outrun" }>
  | { readonly kind: "failed"; readonly mayRetry: boolean };

/** What a race asks of the request it is run for. */
export interface RaceHost {
  /** Sends the request to where it was routed. */
  attempt(routed: Routed, host: AttemptHost): Attempt;
  /** Where a second attempt may run beside the first, its lease open; undefined: nowhere. */
  findSecond(): Routed | undefined;
  /** Whether the request may go to another endpoint after that failure; if so, it will. */
  mayRetry(failure: Failure): boolean;
  /** The client has the answer of this one. */
  opened(attempt: Attempt): void;
  /** An attempt ended before anything of it reached the client. */
  attemptFailed(attempt: Attempt, end: FailedAttempt): void;
  hedgeEnded(result: HedgeResult): void;
  /** The race is over, once. */
  ended(end: RaceEnd): void;
  /** The balancer failed while it ran, where nobody else hears of it. */
  broke(error: unknown): void;
}

/** When to begin the second attempt, and on what time. */
export interface RaceTiming {
  /** Undefined: there is to be no second one. */
  readonly hedgeAfterMs: number | undefined;
  readonly clock: Clock;
  readonly watchdog: Watchdog;
}

/**
 * One attempt of a request or, hedged, two of them at the same time. The first one to show a first byte has the client,
 * and the other one is over in the same moment. What fails before that leaves the field to the other; only the last to
 * fail ends the race.
 */
export class Race implements AttemptHost {
  readonly #host: RaceHost;
  readonly #timing: RaceTiming;
  /** Two at most. */
  #running: readonly Attempt[] = [];
  /** Undefined: there is to be no second one. */
  readonly #hedge: Deadline | undefined;
  #second: Attempt | undefined;
  /** The request will go to another endpoint: an answer that came is kept from the client for that. */
  #isMoving = false;

  constructor(host: RaceHost, timing: RaceTiming) {
    this.#host = host;
    this.#timing = timing;
    if (timing.hedgeAfterMs !== undefined) this.#hedge = new Deadline(timing.watchdog, () => this.#runSecond());
  }

  /** Whether the client is between two events of a stream. */
  get isBetweenEvents(): boolean {
    return this.#running.some((attempt) => attempt.isBetweenEvents);
  }

  start(routed: Routed): void {
    const { hedgeAfterMs, clock } = this.#timing;
    if (hedgeAfterMs !== undefined) this.#hedge?.set(clock.nowMs() + hedgeAfterMs);
    this.#create(routed).start();
  }

  clientClosed(): void {
    this.#endAll((attempt) => attempt.clientClosed());
  }

  timedOut(): void {
    this.#endAll((attempt) => attempt.timedOut());
  }

  /** The balancer failed: whatever runs is ended, and the race with it. */
  abandon(): void {
    this.#endAll((attempt) => attempt.outrun());
  }

  opens(winner: Attempt): void {
    this.#hedge?.lift();
    for (const attempt of this.#running) if (attempt !== winner) attempt.outrun();
    this.#host.opened(winner);
  }

  mayMove(_attempt: Attempt, failure: Failure): boolean {
    this.#hedge?.lift();
    if (this.#running.length > 1) return true;
    this.#isMoving = this.#host.mayRetry(failure);
    return this.#isMoving;
  }

  ended(attempt: Attempt, end: AttemptEnd): void {
    this.#running = this.#running.filter((other) => other !== attempt);
    if (attempt === this.#second) this.#countHedge(end);
    if (end.kind === "outrun") return;
    if (end.kind === "failed") this.#host.attemptFailed(attempt, end);
    if (this.#running.length > 0) return;
    this.#hedge?.lift();
    if (end.kind !== "failed") this.#host.ended(end);
    else this.#host.ended({ kind: "failed", mayRetry: this.#isMoving || this.#host.mayRetry(end.failure) });
  }

  #create(routed: Routed): Attempt {
    const attempt = this.#host.attempt(routed, this);
    this.#running = this.#running.concat(attempt);
    return attempt;
  }

  #runSecond(): void {
    try {
      const routed = this.#host.findSecond();
      if (routed === undefined) return;
      this.#second = this.#create(routed);
      this.#second.start();
    } catch (error) {
      // It runs by a timer: nobody else is there to hear of it.
      this.#host.broke(error);
    }
  }

  #endAll(end: (attempt: Attempt) => void): void {
    this.#hedge?.lift();
    for (const attempt of this.#running) end(attempt);
  }

  #countHedge({ kind }: AttemptEnd): void {
    if (kind === "answered") this.#host.hedgeEnded("won");
    else if (kind === "outrun") this.#host.hedgeEnded("lost");
    else if (kind === "failed") this.#host.hedgeEnded("failed");
  }
}
