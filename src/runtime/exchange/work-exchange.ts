import type { SharedWork } from "../../core/index.ts";

/**
 * How nodes in front of the same endpoints reach each other: worker processes of one machine, or gateways of several.
 * Messages may be lost, late, out of order or come twice; nodes come and go, and their clocks have nothing in common.
 */
export interface WorkExchange {
  /** Name of this node, no other's. */
  readonly self: string;
  /**
   * It takes a message now. False: what was published before is not on its way yet, and whoever publishes waits and says
   * more the next time.
   */
  readonly isReady: boolean;
  /** To all others, at most once to each; never to this node. Must not throw. */
  publish(message: ExchangeMessage): void;
  /** The one who is told what others publish; a later one takes its place. */
  subscribe(listener: ExchangeListener): void;
  /** Neither sends nor hears any more. May be called twice. */
  close(): void;
}

/** Who is told of other nodes. */
export interface ExchangeListener {
  received(message: ExchangeMessage): void;
  /** The transport knows that the node is gone. One that is just silent is found out without it. */
  left(node: string): void;
}

/** What one node tells all others, every so often. */
export interface ExchangeMessage {
  readonly from: string;
  /** Which life of that node this is: one that begins anew under its name draws another number. */
  readonly life: number;
  /** Counts the messages of that life, from 1. One that is not above the last that was heard came late, or twice. */
  readonly sequence: number;
  /**
   * Of all pools and keys: those that are not named have nothing. Otherwise of those alone in which something changed
   * since the message before.
   */
  readonly isWhole: boolean;
  /** By the pool's name. */
  readonly pools: ReadonlyMap<string, SharedWork>;
  /** By the key's id. */
  readonly keys: ReadonlyMap<string, KeyUse>;
}

/** What one node let a key use since that node began. A total, so that a lost message does no harm. */
export interface KeyUse {
  readonly requests: number;
  /** Prompt and output tokens together; less than before where fewer were used than had been expected. */
  readonly tokens: number;
}

/** Version of what is said and of how it is written. Nodes that speak another one do not hear each other. */
export const EXCHANGE_PROTOCOL = 1;
