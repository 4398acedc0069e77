/** Immutable facts about one inference server, as the operator configured it. */
export interface Endpoint {
  /** Unique in its pool; the name in headers, metrics and explanations. */
  readonly id: string;
  /** Base URL; the core never opens it. */
  readonly url: string;
  /** Relative share under the weighted policies; 0 takes no new traffic. */
  readonly weight: number;
  /** Configured capacity in output tokens per second; undefined: learned from the streams. */
  readonly tokensPerSecond: number | undefined;
  /** Configured KV cache size in tokens; undefined: what the engine reports, if it does. */
  readonly kvCapacityTokens: number | undefined;
  /** Requests that it has in flight at most; undefined: no such bound. */
  readonly maxRequests: number | undefined;
}

/** Fills in what a caller leaves out: weight 1, no bound on requests, everything else learned. */
export function endpoint(facts: Pick<Endpoint, "id"> & Partial<Endpoint>): Endpoint {
  return {
    id: facts.id,
    url: facts.url ?? "",
    weight: facts.weight ?? 1,
    tokensPerSecond: facts.tokensPerSecond,
    kvCapacityTokens: facts.kvCapacityTokens,
    maxRequests: facts.maxRequests,
  };
}

/**
 * What an engine reported about itself. An absent value is undefined, never 0:
 * engines rename metrics, and an unknown queue is not an empty one.
 */
export interface EngineSignals {
  /** When this was read, on the caller's monotonic clock. */
  readonly observedAtMs: number;
  readonly runningRequests: number | undefined;
  readonly waitingRequests: number | undefined;
  /** How many it runs at a time, where that is fixed: its slots. */
  readonly maxRunningRequests: number | undefined;
  /** 0 to 1. */
  readonly kvUsedRatio: number | undefined;
  readonly kvCapacityTokens: number | undefined;
  /** Tokens per block: a request's last block counts whole. */
  readonly kvBlockTokens: number | undefined;
  /** Counters since the engine started. */
  readonly promptTokensTotal: number | undefined;
  readonly generatedTokensTotal: number | undefined;
  readonly prefixHitTokensTotal: number | undefined;
  readonly prefixQueryTokensTotal: number | undefined;
  readonly preemptionsTotal: number | undefined;
}

/** What is known of an engine that reports nothing. */
export function unknownSignals(observedAtMs: number): EngineSignals {
  return {
    observedAtMs,
    runningRequests: undefined,
    waitingRequests: undefined,
    maxRunningRequests: undefined,
    kvUsedRatio: undefined,
    kvCapacityTokens: undefined,
    kvBlockTokens: undefined,
    promptTokensTotal: undefined,
    generatedTokensTotal: undefined,
    prefixHitTokensTotal: undefined,
    prefixQueryTokensTotal: undefined,
    preemptionsTotal: undefined,
  };
}
