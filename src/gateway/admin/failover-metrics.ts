import { Counter, type Registry } from "prom-client";
import type { Failure } from "../failover/failure.ts";
import type { RetryDenial } from "../failover/retries.ts";

/** What became of a second attempt that ran beside the first. `failed`: it ended before the first had answered. */
export type HedgeResult = "won" | "lost" | "failed";

/** What is counted of attempts that gave the client nothing, and of what was done about them. */
export class FailoverMetrics {
  readonly #failed: Counter;
  readonly #retries: Counter;
  readonly #denied: Counter;
  readonly #guarded: Counter;
  readonly #hedges: Counter;

  constructor(registry: Registry) {
    const counter = (name: string, help: string, labelNames: string[]): Counter =>
      new Counter({ name, help, labelNames, registers: [registry] });
    this.#failed = counter("evenkeel_attempts_failed_total", "Attempts of which nothing reached the client, by why.", [
      "pool",
      "endpoint",
      "reason",
    ]);
    this.#retries = counter("evenkeel_retries_total", "Requests sent on to another endpoint, by what went before.", [
      "pool",
      "reason",
    ]);
    this.#denied = counter(
      "evenkeel_retries_denied_total",
      "Failed attempts that were not followed by another, by why.",
      ["pool", "reason"],
    );
    this.#guarded = counter(
      "evenkeel_guarded_failures_total",
      "Streams that began with 200 and failed before their first event, unseen by the client.",
      ["pool"],
    );
    this.#hedges = counter("evenkeel_hedges_total", "Second attempts beside the first, by what became of them.", [
      "pool",
      "result",
    ]);
  }

  attemptFailed(pool: string, endpoint: string, reason: Failure): void {
    this.#failed.inc({ pool, endpoint, reason });
  }

  retried(pool: string, reason: Failure): void {
    this.#retries.inc({ pool, reason });
  }

  retryDenied(pool: string, reason: RetryDenial | "no_endpoint"): void {
    this.#denied.inc({ pool, reason });
  }

  guarded(pool: string): void {
    this.#guarded.inc({ pool });
  }

  hedgeEnded(pool: string, result: HedgeResult): void {
    this.#hedges.inc({ pool, result });
  }
}
