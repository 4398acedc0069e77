import { Counter, Histogram, type Registry } from "prom-client";

/** How a stay of a request at the balancer ended. */
export type HoldResult = "sent" | "refused" | "client_closed";

/** In seconds: from what nobody notices to the default of `holding.maxWait`. */
const HOLD_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 120, 180];

/** What is counted of requests that the balancer holds. */
export class HoldMetrics {
  readonly #began: Counter;
  readonly #duration: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#began = new Counter({
      name: "evenkeel_holds_total",
      help: "Times that a request was held, those still held included.",
      labelNames: ["pool"],
      registers,
    });
    this.#duration = new Histogram({
      name: "evenkeel_hold_duration_seconds",
      help: "How long requests were held, by how that ended.",
      buckets: HOLD_SECONDS,
      labelNames: ["pool", "result"],
      registers,
    });
  }

  began(pool: string): void {
    this.#began.inc({ pool });
  }

  ended(pool: string, result: HoldResult, heldMs: number): void {
    this.#duration.observe({ pool, result }, heldMs / 1000);
  }
}
