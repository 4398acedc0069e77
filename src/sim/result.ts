/** How one request fared in a simulation; times in ms from the start. */
export interface RequestRecord {
  readonly arrivedAtMs: number;
  /** Sent to an endpoint; undefined: refused, or unfinished. */
  readonly sentAtMs: number | undefined;
  readonly firstTokenAtMs: number | undefined;
  /** Undefined: refused, lost with an endpoint, or still running when the simulation was cut. */
  readonly endedAtMs: number | undefined;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Prompt tokens the engine found in its prefix cache. */
  readonly cachedTokens: number;
  /** Id of the endpoint that served it; undefined: none. */
  readonly endpoint: string | undefined;
  readonly tenant: string | undefined;
}

/** An endpoint at one moment. */
export interface EndpointSample {
  readonly running: number;
  readonly waiting: number;
  /** Requests the balancer holds for it. */
  readonly held: number;
  /** Referenced share of its KV cache, 0 to 1. */
  readonly kvUsedRatio: number;
}

/** The fleet over time. */
export interface Timeline {
  readonly atMs: readonly number[];
  /** By endpoint id, one sample per entry of `atMs`. */
  readonly endpoints: Readonly<Record<string, readonly EndpointSample[]>>;
}

/** What came out of one simulation. */
export interface SimulationResult {
  readonly policy: string;
  readonly workload: string;
  readonly fleet: string;
  readonly seed: number;
  /** In order of arrival. */
  readonly requests: readonly RequestRecord[];
  readonly timeline: Timeline;
  readonly preemptions: number;
  /** Real time the simulation took. */
  readonly wallMs: number;
}

/** What a request must meet to count as good. */
export interface Slo {
  readonly ttftMs: number;
  /** Mean time per output token after the first. */
  readonly tpotMs: number;
}
