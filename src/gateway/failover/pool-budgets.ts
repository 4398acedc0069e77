import type { ServedPool } from "../../runtime/index.ts";
import { RetryBudget } from "./retry-budget.ts";

/** What a pool may spend on sending requests more than once. */
export interface PoolBudget {
  readonly retries: RetryBudget;
  readonly hedges: RetryBudget;
}

/** One budget per pool, for as long as the pool is there: a pool in trouble uses up no other's. */
export class PoolBudgets {
  readonly #byPool = new WeakMap<ServedPool, PoolBudget>();

  of(pool: ServedPool): PoolBudget {
    let budget = this.#byPool.get(pool);
    if (budget === undefined) {
      budget = { retries: new RetryBudget(), hedges: new RetryBudget(HEDGE_WINDOW_MS) };
      this.#byPool.set(pool, budget);
    }
    return budget;
  }
}

/** Hedges have no floor: over a minute, a share of one in twenty is a whole one from 20 requests on. */
const HEDGE_WINDOW_MS = 60_000;
