import type { Clock } from "../../runtime/index.ts";
import { type Watchdog, Watched } from "../watchdog.ts";
import type { ClientStream } from "./client-stream.ts";

/** What a heartbeat needs to know besides its client. */
export interface HeartbeatTerms {
  /** Silence after which it beats. */
  readonly everyMs: number;
  /** Head of a stream that is opened before an endpoint has answered; undefined: none is. */
  readonly earlyHead: readonly string[] | undefined;
  /** Whether the client is between two events. */
  readonly isBetweenEvents: () => boolean;
  readonly clock: Clock;
  readonly watchdog: Watchdog;
}

/**
 * Puts a comment into a stream that is silent, for whoever cuts connections that carry nothing. A comment is no event:
 * it ends no wait of the balancer's own, neither for the first token nor for the next. It looks twice in each span, so
 * a silence lasts one and a half of them at most.
 */
export class Heartbeat extends Watched {
  readonly #client: ClientStream;
  readonly #terms: HeartbeatTerms;
  #writes = 0;
  /** When something was last seen to have been written. */
  #silentSinceMs: number;

  constructor(client: ClientStream, terms: HeartbeatTerms) {
    super();
    this.#client = client;
    this.#terms = terms;
    this.#silentSinceMs = terms.clock.nowMs();
    this.#watch(this.#silentSinceMs);
  }

  expired(): void {
    const { clock, everyMs } = this.#terms;
    const nowMs = clock.nowMs();
    if (this.#client.writes !== this.#writes) this.#heard(nowMs);
    else if (nowMs - this.#silentSinceMs >= everyMs && this.#beat()) this.#heard(nowMs);
    this.#watch(nowMs);
  }

  stop(): void {
    this.#terms.watchdog.unwatch(this);
  }

  /** False: this is not the moment. */
  #beat(): boolean {
    const { earlyHead, isBetweenEvents } = this.#terms;
    if (!this.#client.isCommitted) {
      if (earlyHead === undefined) return false;
      this.#client.openEarly(earlyHead);
    } else if (!this.#client.awaitsAnswer && !isBetweenEvents()) {
      return false;
    }
    this.#client.comment();
    return true;
  }

  #heard(nowMs: number): void {
    this.#writes = this.#client.writes;
    this.#silentSinceMs = nowMs;
  }

  #watch(nowMs: number): void {
    this.deadlineMs = nowMs + this.#terms.everyMs / 2;
    this.#terms.watchdog.watch(this);
  }
}
