/** One request of a workload: sizes and identity of its prompt, never its text. */
export interface WorkloadRequest {
  readonly promptTokens: number;
  /** Tokens the answer has, exactly; a balancer under test is not told. */
  readonly outputTokens: number;
  /**
   * The prompt as a chain of blocks of `Workload.blockTokens` tokens, the last one possibly partly filled: equal id
   * means equal text up to that block's end. Empty: it shares nothing with any other.
   */
  readonly blockIds: readonly number[];
  /** Undefined: the trace knows no sessions. */
  readonly sessionKey: string | undefined;
  /** Who sent it; undefined: the trace does not say. */
  readonly tenant: string | undefined;
  /** Closed loop: what the client sends once this one is answered. Undefined: nothing. */
  readonly next: FollowUp | undefined;
}

/** The next turn of a client that waits for its answers. */
export interface FollowUp {
  /** From the end of the answer to the next request. */
  readonly thinkMs: number;
  readonly request: WorkloadRequest;
}

/** A request that comes at a time of its own. */
export interface Arrival {
  /** From the start of the workload. */
  readonly atMs: number;
  readonly request: WorkloadRequest;
}

/** Requests to simulate. */
export interface Workload {
  /** As reports show it: "azure-2023-conv.csv x2". */
  readonly name: string;
  /** Tokens per block of `blockIds`. */
  readonly blockTokens: number;
  /** In order of time. */
  readonly arrivals: readonly Arrival[];
}
