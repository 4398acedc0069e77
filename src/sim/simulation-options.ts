import type { Balancer, BalancerOptions, PolicyDefinition, Release } from "../core/index.ts";
import type { FleetEvent } from "./fleet-events.ts";
import type { FleetSpec } from "./fleet-spec.ts";
import type { Workload } from "./workload/workload.ts";

/** What is simulated, and how. */
export interface SimulationOptions {
  readonly workload: Workload;
  readonly fleet: FleetSpec;
  /** In order of time; undefined: the fleet stays as it is. */
  readonly events?: readonly FleetEvent[];
  /** A policy's name, or the definition of one that the balancer does not have. */
  readonly policy: string | PolicyDefinition;
  readonly policyOptions?: unknown;
  /** What becomes of a request for which no endpoint has room; undefined: the balancer's default. */
  readonly whenFull?: BalancerOptions["whenFull"];
  /** Bounds of holding; undefined: the balancer's default. */
  readonly holding?: BalancerOptions["holding"];
  /** Of the balancers' draws; undefined: 1. */
  readonly seed?: number;
  /** From the decision to the engine; undefined: `DEFAULT_SEND_DELAY_MS`. */
  readonly sendDelayMs?: number;
  /** Tokens per KV block of engines where the workload has no blocks of its own; undefined: `DEFAULT_BLOCK_TOKENS`. */
  readonly blockTokens?: number;
  /** Undefined: one balancer. */
  readonly replicas?: ReplicaOptions;
  /** Real time in ms, for `wallMs`; undefined: not measured. */
  readonly wallClockMs?: () => number;
  /** Told now and then which share of the requests is through, 0 to 1. */
  readonly onProgress?: (share: number) => void;
}

/** Several balancers in front of one fleet. Each has a ledger of its own and sees its own traffic alone. */
export interface ReplicaOptions {
  readonly count: number;
  /** Who gets a request: each in turn, the one its session belongs to, or any, as connections that clients keep deal them. */
  readonly dealing: "in_turn" | "by_session" | "at_random";
  /** Undefined: they know nothing of one another. */
  readonly replication?: Replication;
}

/** How replicas tell each other of their work. */
export interface Replication {
  /** Begins with these balancers, at time 0. */
  begin(balancers: readonly Balancer[]): Replicating;
}

/** Replicas that tell each other of their work. */
export interface Replicating {
  /** When the next message goes out or arrives. */
  readonly nextAtMs: number;
  /** Sends and hands out what is due. @returns What that released, at whichever of them. */
  move(nowMs: number): readonly Release[];
}

/** Measured from a gateway's decision to the engine's scheduler within one data centre. */
export const DEFAULT_SEND_DELAY_MS = 2;

/** A multiple of every engine's own block; coarse enough to be quick. */
export const DEFAULT_BLOCK_TOKENS = 64;
