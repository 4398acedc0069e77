/**
 * Where a request that came at `arrivedAtMs` stands among those held for an endpoint, by its own prefill there: see
 * `LateBinding.holdKey`.
 */
export function leastDelayKey(ownMs: number, arrivedAtMs: number): number {
  return arrivedAtMs + Math.min(SIZE_WEIGHT * ownMs, MAX_OVERTAKEN_MS);
}

/** A request is overtaken by those whose prefill is shorter by 1 ms for each 60 ms that it came before them... */
const SIZE_WEIGHT = 60;

/** ...and by none that came this much later. */
const MAX_OVERTAKEN_MS = 120_000;
