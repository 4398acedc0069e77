/** What a client is pointed at: the balancer with any engine behind it. */
export interface ClientTarget {
  /** Without `/v1`. */
  readonly url: string;
  readonly model: string;
  /** Body fields that keep the engine from stopping before the token limit; SDKs pass on what they do not know. */
  readonly untilLimit: object;
  /** What the balancer's ledger holds open, in whatever units: 0 when nothing is in flight. */
  openWork(): Promise<number>;
}
