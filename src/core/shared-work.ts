import type { Prefix } from "./prefix-hash.ts";

/** Work in flight on one endpoint that one balancer knows of; the fields are those of `Account`. */
export interface AccountShare {
  readonly requests: number;
  readonly waitingRequests: number;
  readonly waitingPrefillTokens: number;
  readonly waitingPrefillPairs: number;
  readonly waitingPromptTokens: number;
  readonly runningRequests: number;
  readonly contextTokens: number;
  readonly outputTokens: number;
  readonly recentPrefillTokens: number;
  readonly recentPrefillPairs: number;
}

/** Requests that one balancer holds for one endpoint. */
export interface HeldShare {
  readonly requests: number;
  readonly prefillTokens: number;
  readonly prefillPairs: number;
}

/** What one balancer knows of one endpoint. */
export interface EndpointShare {
  readonly account: AccountShare;
  readonly held: HeldShare;
  /** Prompt tokens in flight that the account counts more than once though they lie in the KV cache once. */
  readonly sharedTokens: number;
}

/** A prompt that was sent to an endpoint. */
export interface SentPrefix {
  readonly endpointId: string;
  readonly prefix: Prefix;
  readonly promptTokens: number;
}

/** What one of several balancers in front of the same endpoints tells the others, every so often. */
export interface SharedWork {
  /** By endpoint id: all of it, not what changed, so that a lost message does no harm. */
  readonly endpoints: Readonly<Record<string, EndpointShare>>;
  /** Since the last message. */
  readonly sent: readonly SentPrefix[];
}
