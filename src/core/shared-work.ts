import type { SpeedSample } from "./engine-speed.ts";
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
  /** How long ago prefill of this balancer last moved on there, in ms; undefined: it had none. */
  readonly prefillMovedAgoMs: number | undefined;
}

/** Requests that one balancer holds for one endpoint. */
export interface HeldShare {
  readonly requests: number;
  readonly prefillTokens: number;
  readonly prefillPairs: number;
  /** The one that goes first; absent: there is none. */
  readonly first?: HeldFirst;
}

/** Where in the order a held request is, so that others' may be compared. */
export interface HeldFirst {
  readonly urgency: number;
  /** How long ago its key was: keys are times, and clocks have nothing in common. Below 0: it is still to come. */
  readonly keyAgoMs: number;
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
  /** What it learned of the endpoint's speed since it was last told: others see none of its requests. */
  readonly samples: readonly SpeedSample[];
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
  /**
   * It names all endpoints; others have none of the balancer's work. False: those alone where requests came, moved on or
   * went since the message before. Each is told of as it is now, so that a lost message does no harm for longer than
   * until the next whole one.
   */
  readonly isWhole: boolean;
  /** Each change is told as it comes: what was not told has not changed. False: only at some interval. */
  readonly isPrompt: boolean;
  /** By endpoint id. */
  readonly endpoints: Readonly<Record<string, EndpointShare>>;
  /** Since the last message, in order. */
  readonly cache: readonly CacheEvent[];
}
