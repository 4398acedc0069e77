import type { RequestProfile, Tenant } from "../core/index.ts";

/** An output token takes a decode step of its own; prompt tokens are computed many at a time. */
const PROMPT_WEIGHT = 1;
const OUTPUT_WEIGHT = 2;

/** Tenants remembered besides those that wait. One that is forgotten comes back like a new one. */
export const MAX_IDLE_TENANTS = 10_000;

/**
 * Virtual token counters (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024): each tenant's counts
 * what was computed for it, and of those that wait the one with the least goes first. Of two that wait all the time,
 * neither gets more than the other by more than `2 * max(PROMPT_WEIGHT * longest prompt, OUTPUT_WEIGHT * tokens in
 * flight)`.
 *
 * A tenant that comes back is lifted to the least of those that wait: what it did not ask for in the past it cannot ask
 * for now. Where nobody waits, it is lifted to whoever was served last, as if every request waited for no time.
 */
export class TenantCounters {
  readonly #counters = new Map<string | undefined, TenantCounter>();
  readonly #waiting = new Set<TenantCounter>();
  #lastServed: TenantCounter | undefined;

  /** One that is not known yet is kept as soon as a request of its own arrived. */
  of(name: string | undefined): TenantCounter {
    return this.#counters.get(name) ?? new TenantCounter(name, this);
  }

  get size(): number {
    return this.#counters.size;
  }

  arrived(counter: TenantCounter): void {
    this.#counters.delete(counter.name);
    this.#counters.set(counter.name, counter);
    this.#forget();
    if (!this.#waiting.has(counter)) counter.lift(this.#least());
  }

  waits(counter: TenantCounter): void {
    this.#waiting.add(counter);
  }

  waitsNoMore(counter: TenantCounter): void {
    this.#waiting.delete(counter);
  }

  served(counter: TenantCounter): void {
    this.#lastServed = counter;
  }

  #least(): number {
    if (this.#waiting.size === 0) return this.#lastServed?.servedTokens ?? 0;
    let least = Number.POSITIVE_INFINITY;
    for (const { servedTokens } of this.#waiting) least = Math.min(least, servedTokens);
    return least;
  }

  /** Who was not heard of for longest goes; those that wait are put behind, so that they are looked at once. */
  #forget(): void {
    for (const [name, counter] of this.#counters) {
      if (this.#counters.size <= MAX_IDLE_TENANTS + this.#waiting.size) return;
      this.#counters.delete(name);
      if (this.#waiting.has(counter)) this.#counters.set(name, counter);
    }
  }
}

/** What one tenant got, and waits for. */
export class TenantCounter implements Tenant {
  readonly name: string | undefined;
  readonly #all: TenantCounters;
  #servedTokens = 0;
  #heldTokens = 0;
  #heldRequests = 0;

  constructor(name: string | undefined, all: TenantCounters) {
    this.name = name;
    this.#all = all;
  }

  get servedTokens(): number {
    return this.#servedTokens;
  }

  get claimedTokens(): number {
    return this.#servedTokens + this.#heldTokens;
  }

  costOf({ promptTokens, output }: RequestProfile): number {
    return weighed(promptTokens, output.meanTokens);
  }

  arrived(): void {
    this.#all.arrived(this);
  }

  held(request: RequestProfile): void {
    if (this.#heldRequests === 0) this.#all.waits(this);
    this.#heldRequests++;
    this.#heldTokens += this.costOf(request);
  }

  left(request: RequestProfile): void {
    this.#heldRequests--;
    this.#heldTokens -= this.costOf(request);
    if (this.#heldRequests > 0) return;
    // Sums of fractions leave dust behind.
    this.#heldTokens = 0;
    this.#all.waitsNoMore(this);
  }

  charge(promptTokens: number, outputTokens: number): void {
    this.#servedTokens += weighed(promptTokens, outputTokens);
    if (promptTokens > 0) this.#all.served(this);
  }

  lift(servedTokens: number): void {
    this.#servedTokens = Math.max(this.#servedTokens, servedTokens);
  }
}

function weighed(promptTokens: number, outputTokens: number): number {
  return PROMPT_WEIGHT * promptTokens + OUTPUT_WEIGHT * outputTokens;
}
