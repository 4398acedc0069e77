import type { Lease } from "./ledger.ts";

/** When real traffic takes an endpoint out of its pool, and for how long. */
export interface EjectionOptions {
  /** Consecutive failures that eject. */
  readonly failures: number;
  /** Share of failures among the requests of the window that ejects, 0 to 1. */
  readonly failureRatio: number;
  /** With fewer requests than this in the window the share says nothing. */
  readonly minRequests: number;
  readonly windowMs: number;
  /** How long the first ejection lasts; each further one twice as long as the last. */
  readonly baseMs: number;
  readonly maxMs: number;
  /** Share of a pool's usable endpoints that may be out at a time, 0 to 1; of two or more, one always may. 0: none is ejected. */
  readonly maxRatio: number;
}

/** docs/health.md says where each comes from. */
export const DEFAULT_EJECTION_OPTIONS: EjectionOptions = {
  failures: 5,
  failureRatio: 0.5,
  minRequests: 20,
  windowMs: 30_000,
  baseMs: 5_000,
  maxMs: 300_000,
  maxRatio: 0.5,
};

/**
 * What is left out is that of `base`.
 * @throws RangeError when a number is not one that can be meant.
 */
export function ejectionOptions(
  known: Partial<EjectionOptions> | undefined,
  base: EjectionOptions = DEFAULT_EJECTION_OPTIONS,
): EjectionOptions {
  const options = { ...base, ...known };
  for (const [name, value] of Object.entries(options)) {
    if (value > 0 || (name === "maxRatio" && value === 0)) continue;
    throw new RangeError(`ejection: ${name} must be above 0, not ${value}`);
  }
  return options;
}

/** `closed`: takes requests. `open`: takes none. `half_open`: takes one at a time, on trial. */
export type BreakerState = "closed" | "open" | "half_open";

/**
 * Circuit breaker of one endpoint. Real traffic is its only witness: a probe that is good says nothing of requests.
 *
 * - Generations: a result counts only if its request began after the last opening. What is still in flight when the
 *   breaker opens neither opens it again nor closes it.
 * - A trial is a lease: however its request ends, the place is free again, and a request that does not end gives it up
 *   after a while. Whichever request of this generation has a result first decides.
 * - Refusals for overload and faults of clients are no results: they free a trial's place and change nothing else.
 *
 * Whether it may open is not its own business: the pool says how many endpoints may be out.
 */
export class Breaker {
  #options: EjectionOptions;
  #window: ResultWindow;
  #generation: object = {};
  #isOpen = false;
  #openedAtMs = Number.NEGATIVE_INFINITY;
  #openUntilMs = Number.NEGATIVE_INFINITY;
  /** How long the last opening was to last; 0: there was none. */
  #openMs = 0;
  #closedAtMs = Number.NEGATIVE_INFINITY;
  #consecutiveFailures = 0;
  #openings = 0;
  #trial: Lease | undefined;
  #trialUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: EjectionOptions = DEFAULT_EJECTION_OPTIONS) {
    this.#options = options;
    this.#window = new ResultWindow(options.windowMs);
  }

  /** Other numbers from now on. Its state stays; another window begins anew. */
  configure(options: EjectionOptions): void {
    if (options.windowMs !== this.#options.windowMs) this.#window = new ResultWindow(options.windowMs);
    this.#options = options;
  }

  stateAt(nowMs: number): BreakerState {
    if (!this.#isOpen) return "closed";
    return nowMs < this.#openUntilMs ? "open" : "half_open";
  }

  /** Open or half-open. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** How often it opened, trials that failed included. */
  get openings(): number {
    return this.#openings;
  }

  /** When it opened last; negative infinity: never. */
  get openedAtMs(): number {
    return this.#openedAtMs;
  }

  /** From when on it takes a trial; in the past unless it is open. */
  get openUntilMs(): number {
    return this.#openUntilMs;
  }

  /** From when on a request may go there; in the past: one may. */
  get admitsAtMs(): number {
    if (!this.#isOpen) return Number.NEGATIVE_INFINITY;
    return this.#trial === undefined ? this.#openUntilMs : Math.max(this.#openUntilMs, this.#trialUntilMs);
  }

  /** Whether a request may go there: any while it is closed, one at a time on trial. */
  admits(nowMs: number): boolean {
    return nowMs >= this.admitsAtMs;
  }

  /** The request of `lease` is sent there. */
  began(lease: Lease, nowMs: number): void {
    lease.generation = this.#generation;
    if (!this.#isOpen || !this.admits(nowMs)) return;
    this.#trial = lease;
    this.#trialUntilMs = nowMs + Math.max(MIN_TRIAL_MS, this.#openMs);
  }

  /** The request of `lease` is over there, whatever was told of it. */
  ended(lease: Lease): void {
    if (this.#trial === lease) this.#trial = undefined;
  }

  /** It was answered well. Told before its end, `failed` may follow. True: that closed the breaker. */
  succeeded(lease: Lease, nowMs: number): boolean {
    if (lease.generation !== this.#generation || lease.isProven) return false;
    lease.isProven = true;
    if (this.#isOpen) {
      this.close(nowMs);
      return true;
    }
    this.#consecutiveFailures = 0;
    this.#window.add(1, 0, nowMs);
    return false;
  }

  /** The endpoint failed it. True: too much has failed by that, the breaker is to be opened. */
  failed(lease: Lease, nowMs: number): boolean {
    const isCounted = lease.generation === this.#generation;
    this.dismissed(lease);
    if (!isCounted) return false;
    if (this.#isOpen) return nowMs >= this.#openUntilMs;
    this.#consecutiveFailures += 1;
    // One that seemed well at first is among the requests already.
    this.#window.add(lease.isProven ? 0 : 1, 1, nowMs);
    return this.#hasFailedTooMuch(nowMs);
  }

  /** It ended in a way that says nothing of the endpoint. */
  dismissed(lease: Lease): void {
    lease.generation = undefined;
    this.ended(lease);
  }

  /** Takes no requests for a while, twice as long as the last time unless that is long ago. */
  open(nowMs: number): void {
    const { baseMs, maxMs, windowMs } = this.#options;
    const isAgain = this.#isOpen || nowMs - this.#closedAtMs < Math.max(windowMs, this.#openMs);
    this.#openMs = isAgain ? Math.min(maxMs, Math.max(baseMs, 2 * this.#openMs)) : baseMs;
    this.#isOpen = true;
    this.#openedAtMs = nowMs;
    this.#openUntilMs = nowMs + this.#openMs;
    this.#openings += 1;
    this.#begin();
  }

  /** Takes requests again, with nothing held against it but how long it was out. */
  close(nowMs: number): void {
    if (this.#isOpen) this.#closedAtMs = nowMs;
    this.#isOpen = false;
    this.#openUntilMs = nowMs;
    this.#forget();
  }

  /** The engine is another one by now, a restarted one: it may have its trial at once. */
  renew(nowMs: number): void {
    if (this.#isOpen) this.#openUntilMs = Math.min(this.#openUntilMs, nowMs);
    this.#begin();
  }

  /** A new generation. */
  #begin(): void {
    this.#generation = {};
    this.#forget();
  }

  #forget(): void {
    this.#trial = undefined;
    this.#consecutiveFailures = 0;
    this.#window.clear();
  }

  #hasFailedTooMuch(nowMs: number): boolean {
    const { failures, failureRatio, minRequests } = this.#options;
    if (this.#consecutiveFailures >= failures) return true;
    const seen = this.#window.sumsAt(nowMs);
    return seen.requests >= minRequests && seen.failures >= failureRatio * seen.requests;
  }
}

/**
 * A trial that takes longer than this, and longer than the endpoint was out, gives its place up; its result still
 * counts. A prompt of 100,000 tokens has its first token by then.
 */
const MIN_TRIAL_MS = 30_000;

/** Results of the last `windowMs`, give or take a tenth. */
class ResultWindow {
  readonly #bucketMs: number;
  readonly #requests = new Uint32Array(BUCKETS);
  readonly #failures = new Uint32Array(BUCKETS);
  /** Number of the newest bucket since the beginning of time. */
  #newest = Number.NEGATIVE_INFINITY;

  constructor(windowMs: number) {
    this.#bucketMs = windowMs / BUCKETS;
  }

  add(requests: number, failures: number, nowMs: number): void {
    this.#advance(nowMs);
    const at = this.#newest % BUCKETS;
    this.#requests[at] = (this.#requests[at] ?? 0) + requests;
    this.#failures[at] = (this.#failures[at] ?? 0) + failures;
  }

  sumsAt(nowMs: number): { readonly requests: number; readonly failures: number } {
    this.#advance(nowMs);
    return { requests: sum(this.#requests), failures: sum(this.#failures) };
  }

  clear(): void {
    this.#requests.fill(0);
    this.#failures.fill(0);
  }

  #advance(nowMs: number): void {
    const newest = Math.floor(nowMs / this.#bucketMs);
    if (newest - this.#newest >= BUCKETS) this.clear();
    else for (let old = this.#newest + 1; old <= newest; old++) this.#empty(old % BUCKETS);
    this.#newest = Math.max(this.#newest, newest);
  }

  #empty(at: number): void {
    this.#requests[at] = 0;
    this.#failures[at] = 0;
  }
}

const BUCKETS = 10;

function sum(counts: Uint32Array): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}
