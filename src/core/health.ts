/**
 * What is believed of an endpoint. `unknown`: not probed to an end yet, tried all the same. `loading`: its engine
 * starts or sleeps, no fault. `auth_failed`: it answers, but refuses the credentials it is probed with.
 */
export type Availability = "unknown" | "ready" | "loading" | "down" | "auth_failed";

/** What one active probe found; `reason` is for the log and never holds a secret. */
export type ProbeOutcome =
  | { readonly kind: "ok" }
  | { readonly kind: "loading"; readonly reason: string }
  | { readonly kind: "auth_failed"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "timed_out"; readonly reason: string; readonly startedAtMs: number };

/** A change of availability and what caused it. */
export interface HealthTransition {
  readonly from: Availability;
  readonly to: Availability;
  readonly reason: string;
}

export interface HealthOptions {
  /** Consecutive failures of probes and connections that take an endpoint down. */
  readonly failuresToDown: number;
  /** Consecutive good probes that bring a `down` endpoint back; from every other state one is enough. */
  readonly successesToReady: number;
  /** A token this long before a probe began still excuses the probe's time-out; the probe interval fits. */
  readonly progressWindowMs: number;
}

/**
 * Three failures at the default probe interval of 5 s bridge a pause of some 10 s (garbage collection, a model swap);
 * two successes keep an engine that crashes in a loop from taking traffic at each start.
 */
export const DEFAULT_HEALTH_OPTIONS: HealthOptions = {
  failuresToDown: 3,
  successesToReady: 2,
  progressWindowMs: 5_000,
};

/** Whether new requests may go there. `unknown` does: that is how it is tried. `auth_failed` does not: it would refuse them. */
export function takesTraffic(availability: Availability): availability is "ready" | "unknown" {
  return availability === "ready" || availability === "unknown";
}

/**
 * Whether one endpoint can be reached and says it is well, from two witnesses: its probes, and the connections that real
 * traffic finds or does not. What becomes of requests that were sent is the breaker's business.
 *
 * - A refused connection is strong evidence but not proof: a full accept queue refuses too, and the request moves
 *   on at little cost. One alone therefore counts as one failure. When probe and traffic have both failed since
 *   either last succeeded, they agree, and the endpoint is down at once.
 * - A good answer to a request clears only what traffic said. An endpoint whose probe says 503 may be asking to be
 *   left alone while it finishes its work, and finished work is no reason to send more.
 * - A probe that times out while tokens flow says that the probe starved (llama.cpp serves `/health` from the
 *   threads that hold streams), not that the engine died.
 * - There is no input for what an answer says: no status, a client's mistake least of all, has a way to change health.
 */
export class EndpointHealth {
  #options: HealthOptions;
  #availability: Availability = "unknown";
  #probeFailures = 0;
  #connectFailures = 0;
  #successes = 0;
  #lastProgressAtMs = Number.NEGATIVE_INFINITY;
  #lastConnectFailureAtMs = Number.NEGATIVE_INFINITY;
  /** When it refused the first of the connections that were refused since one was accepted. */
  #refusedSinceMs: number | undefined;
  /** When the first of the probes began that got no answer since one did. */
  #unansweredSinceMs: number | undefined;

  constructor(options: HealthOptions = DEFAULT_HEALTH_OPTIONS) {
    this.#options = options;
  }

  get availability(): Availability {
    return this.#availability;
  }

  /** Since when it has been refusing connections, if it is down for that: nobody listens there. Undefined: it is not. */
  get refusesSinceMs(): number | undefined {
    return this.#availability === "down" ? this.#refusedSinceMs : undefined;
  }

  /**
   * Whether it is down for giving no sign of life, neither to probes nor in any answer: a machine without power, an engine
   * that stands still. One that refuses connections may still finish what it has.
   */
  get isLifeless(): boolean {
    const sinceMs = this.#unansweredSinceMs;
    return this.#availability === "down" && sinceMs !== undefined && this.#lastProgressAtMs < sinceMs;
  }

  /** Other thresholds from now on; what was found stays. */
  configure(options: HealthOptions): void {
    this.#options = options;
  }

  /** A probe ended. */
  probed(outcome: ProbeOutcome, nowMs: number): HealthTransition | undefined {
    if (outcome.kind === "timed_out") this.#unansweredSinceMs ??= outcome.startedAtMs;
    else this.#unansweredSinceMs = undefined;
    switch (outcome.kind) {
      case "ok":
        return this.#probeSucceeded();
      case "loading":
      case "auth_failed":
        this.#clearStreaks();
        this.#refusedSinceMs = undefined;
        return this.#moveTo(outcome.kind, outcome.reason);
      case "timed_out":
        if (this.#lastProgressAtMs >= outcome.startedAtMs - this.#options.progressWindowMs) return undefined;
        return this.#probeFailed(outcome.reason, nowMs);
      case "failed":
        return this.#probeFailed(outcome.reason, nowMs);
    }
  }

  /** A request found no connection: refused, unreachable or timed out before it was accepted. */
  connectFailed(reason: string, nowMs: number): HealthTransition | undefined {
    this.#lastConnectFailureAtMs = nowMs;
    this.#connectFailures += 1;
    return this.#failed(reason, nowMs);
  }

  /** A byte of an answer arrived. It excuses a starved probe and nothing else: old streams outlive a closed port. */
  progressed(nowMs: number): void {
    this.#lastProgressAtMs = nowMs;
  }

  /**
   * A request was answered well; its first byte, or the first token of a stream, is soon enough to say so. Requests that
   * began before the last connect failure prove nothing about the connections after it.
   */
  requestSucceeded(startedAtMs: number): HealthTransition | undefined {
    if (startedAtMs <= this.#lastConnectFailureAtMs) return undefined;
    this.#connectFailures = 0;
    this.#refusedSinceMs = undefined;
    return this.#availability === "unknown" ? this.#moveTo("ready", "a request was answered") : undefined;
  }

  #probeSucceeded(): HealthTransition | undefined {
    this.#probeFailures = 0;
    this.#connectFailures = 0;
    this.#refusedSinceMs = undefined;
    this.#successes += 1;
    const needed = this.#availability === "down" ? this.#options.successesToReady : 1;
    return this.#successes >= needed ? this.#moveTo("ready", "probe answered") : undefined;
  }

  #probeFailed(reason: string, nowMs: number): HealthTransition | undefined {
    this.#probeFailures += 1;
    return this.#failed(reason, nowMs);
  }

  #failed(reason: string, nowMs: number): HealthTransition | undefined {
    this.#successes = 0;
    if (reason === "ECONNREFUSED") this.#refusedSinceMs ??= nowMs;
    const agree = this.#probeFailures > 0 && this.#connectFailures > 0;
    const enough = this.#probeFailures + this.#connectFailures >= this.#options.failuresToDown;
    return agree || enough ? this.#moveTo("down", reason) : undefined;
  }

  #clearStreaks(): void {
    this.#probeFailures = 0;
    this.#connectFailures = 0;
    this.#successes = 0;
  }

  #moveTo(to: Availability, reason: string): HealthTransition | undefined {
    const from = this.#availability;
    if (from === to) return undefined;
    this.#availability = to;
    return { from, to, reason };
  }
}
