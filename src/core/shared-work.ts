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
  /** How long ago prefill last moved on there, as far as this balancer saw, in ms. */
  readonly prefillMovedAgoMs: number;
}

/** Requests that one balancer holds for one endpoint. */
export interface HeldShare {
  readonly requests: number;
  readonly prefillTokens: number;
  readonly prefillPairs: number;
}

/** Prefill that an endpoint has done for one balancer, since that began. */
export interface PrefillDone {
  readonly tokens: number;
  /** Attention pairs. */
  readonly pairs: number;
  /** Steps that held it. */
  readonly steps: number;
}

/** What one balancer knows of one endpoint. */
export interface EndpointShare {
  readonly account: AccountShare;
  readonly held: HeldShare;
  /** Others' prefill slows the answers one sees: who does not know of it takes the endpoint for slow. */
  readonly done: PrefillDone;
}

/** Something that one balancer did to an endpoint's prefix cache. */
export type CacheEvent =
  /** A request was sent there. `request` numbers it among all that the balancer sent. */
  | {
      readonly kind: "sent";
      readonly request: number;
      readonly endpointId: string;
      readonly prefix: Prefix | undefined;
      readonly promptTokens: number;
    }
  /** It is over. `isComputed`: the engine got as far as the end of its prompt. */
  | {
      readonly kind: "ended";
      readonly request: number;
      readonly generatedTokens: number;
      readonly isComputed: boolean;
    };

/** What one of several balancers in front of the same endpoints tells the others, every so often. */
export interface SharedWork {
  /** Counts the messages. Where one is missing, what it told of caches is lost, and with it what came before. */
  readonly sequence: number;
  /** By endpoint id: all of it, not what changed, so that a lost message does no harm. */
  readonly endpoints: Readonly<Record<string, EndpointShare>>;
  /** Since the last message, in order. */
  readonly cache: readonly CacheEvent[];
}
