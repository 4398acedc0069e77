/**
 * Slow start of one endpoint: how warm it is, and the credit by which its share of requests is held to that. It earns
 * credit with each request it could have had and pays with each it gets.
 */
export class SlowStart {
  #durationMs: number;
  #sinceMs = Number.NEGATIVE_INFINITY;
  #warmAtMs = Number.NEGATIVE_INFINITY;
  #credit = 1;

  /** @param durationMs From the first request to the full share; 0 or undefined: the share is full at once. */
  constructor(durationMs: number | undefined) {
    this.#durationMs = durationMs ?? 0;
  }

  /** Takes this long from now on; one that has begun goes on at that pace, and what is warm stays so. */
  configure(durationMs: number | undefined, nowMs: number): void {
    this.#durationMs = durationMs ?? 0;
    if (nowMs < this.#warmAtMs) this.#warmAtMs = this.#sinceMs + this.#durationMs;
  }

  /** The endpoint is cold: it is new, or it was out. */
  begin(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#warmAtMs = nowMs + this.#durationMs;
    this.#credit = 1;
  }

  /** From when on it may have its full share. */
  get warmAtMs(): number {
    return this.#warmAtMs;
  }

  /** The part of its full share that it may have, above 0 up to 1. */
  warmthAt(nowMs: number): number {
    if (nowMs >= this.#warmAtMs) return 1;
    return COLD + (1 - COLD) * Math.max(0, (nowMs - this.#sinceMs) / this.#durationMs);
  }

  /** Whether it may have the next request. */
  get hasCredit(): boolean {
    return this.#credit >= 1;
  }

  /** @param share Of one request. */
  earn(share: number): void {
    this.#credit = Math.min(MAX_CREDIT, this.#credit + share);
  }

  /** It gets a request. One that it gets without credit is not held against it: there was nowhere better to go. */
  pay(): void {
    this.#credit = Math.max(0, this.#credit - 1);
  }
}

/** An endpoint in slow start or past it. */
interface Warming {
  readonly endpoint: { readonly weight: number };
  readonly slowStart: SlowStart;
}

/**
 * The candidates of one request that are colder than the warmest of them. Only beside warmer ones is a cold endpoint
 * held back: where all are new, all are alike.
 */
export interface Ramp<Item extends Warming> {
  readonly colder: readonly Item[];
  /** Warmth of the warmest candidate. */
  readonly warmth: number;
  /** Of all candidates together. */
  readonly weight: number;
}

/** Undefined: all are equally warm. */
export function rampOf<Item extends Warming>(candidates: readonly Item[], nowMs: number): Ramp<Item> | undefined {
  let warmth = 0;
  let coldest = 1;
  let weight = 0;
  for (const { endpoint, slowStart } of candidates) {
    const itsWarmth = slowStart.warmthAt(nowMs);
    warmth = Math.max(warmth, itsWarmth);
    coldest = Math.min(coldest, itsWarmth);
    weight += endpoint.weight;
  }
  if (coldest >= warmth) return undefined;
  return { colder: candidates.filter(({ slowStart }) => slowStart.warmthAt(nowMs) < warmth), warmth, weight };
}

/** A request that all in `ramp` could have had went to `chosen`. */
export function rampMoved<Item extends Warming>(
  { colder, warmth, weight }: Ramp<Item>,
  chosen: Item,
  nowMs: number,
): void {
  for (const item of colder) {
    const { endpoint, slowStart } = item;
    slowStart.earn(((slowStart.warmthAt(nowMs) / warmth) * endpoint.weight) / weight);
    if (item === chosen) slowStart.pay();
  }
}

/** An endpoint that may have nothing never gets warm. A tenth is what a pool that was sized without it can spare. */
const COLD = 0.1;
/** What it did not use is not kept for later, but for the fraction that is left of a request paid. */
const MAX_CREDIT = 2;
