import type { Config } from "../config/index.ts";

/**
 * The configuration that one of several workers serves by. What protects memory is divided among them; rates and what
 * endpoints may have at a time hold for all together, since workers tell each other. Operators ask the primary.
 */
export function shareOf(config: Config): Config {
  const { workers, limits, failover, pools } = config;
  const part = (whole: number): number => Math.ceil(whole / workers);
  // One body that is allowed fits, however many workers there are.
  const bytes = (whole: number): number => Math.max(part(whole), Math.min(whole, limits.bodyBytes));
  return {
    ...config,
    admin: undefined,
    limits: { ...limits, connections: part(limits.connections), bufferedBytes: bytes(limits.bufferedBytes) },
    failover: { ...failover, minRetriesPerSecond: retryFloor(failover.minRetriesPerSecond, workers) },
    pools: pools.map((pool) => {
      const { maxRequests, maxBytes } = pool.holding;
      return { ...pool, holding: { ...pool.holding, maxRequests: part(maxRequests), maxBytes: bytes(maxBytes) } };
    }),
  };
}

/** A floor that allows one retry in a budget's window at least, where all together are allowed one. */
function retryFloor(minPerSecond: number, workers: number): number {
  return Math.max(minPerSecond / workers, Math.min(minPerSecond, ONE_IN_WINDOW_PER_SECOND));
}

/** The window of a budget is 10 s. */
const ONE_IN_WINDOW_PER_SECOND = 0.1;
