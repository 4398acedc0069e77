import type { Counter } from "prom-client";

/**
 * What is added to one series of a counter between two scrapes. prom-client finds a series by its labels at every
 * addition, which costs a request as much as deciding; here that is done once a scrape.
 */
export class Tally {
  readonly #series: Counter.Internal;
  /** Undefined: nothing, which is not the same as a zero to a series that is not there yet. */
  #pending: number | undefined;

  constructor(series: Counter.Internal) {
    this.#series = series;
  }

  add(amount: number = 1): void {
    this.#pending = (this.#pending ?? 0) + amount;
  }

  /** Hands on what was added. */
  flush(): void {
    if (this.#pending === undefined) return;
    this.#series.inc(this.#pending);
    this.#pending = undefined;
  }
}
