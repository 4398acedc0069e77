import type { ZodType } from "zod";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import type { EngineSpeed } from "./engine-speed.ts";
import type { Account } from "./ledger.ts";
import type { Random } from "./random.ts";
import type { RequestProfile } from "./request.ts";

/** An endpoint as a policy sees it: live and read-only. A policy never keeps one past its call. */
export interface Candidate {
  readonly endpoint: Endpoint;
  /** Work in flight that this balancer sent there. */
  readonly account: Account;
  /** How fast it is: configured or learned. */
  readonly speed: EngineSpeed;
  /** What the engine last reported; undefined: nothing yet. */
  readonly signals: EngineSignals | undefined;
  /** KV cache size in tokens, configured or reported; undefined: unknown. */
  readonly kvCapacityTokens: number | undefined;
  /** Prompt tokens of `request` believed to be in its prefix cache. */
  cachedTokens(request: RequestProfile): number;
}

/** At least one candidate, by type: a policy never meets an empty list. */
export type Candidates = readonly [Candidate, ...Candidate[]];

export interface PolicyContext {
  readonly nowMs: number;
  readonly random: Random;
}

/** One candidate in an explanation. */
export interface Considered {
  readonly endpoint: string;
  /** What the policy compared; `PolicyDefinition.score` says what it is. */
  readonly score: number;
  /** Parts the score is made of, in the policy's own names and units. */
  readonly terms?: Readonly<Record<string, number>>;
}

export interface Choice {
  readonly chosen: Candidate;
  /** Every candidate that was compared, in the order given. */
  readonly considered: readonly Considered[];
  /** Why this one, in words a user reads: "lowest load after adding the request". */
  readonly reason: string;
}

/** The request was sent: the only moment at which a policy may move state of its own. */
export interface RoutedEvent {
  readonly request: RequestProfile;
  readonly chosen: Candidate;
  readonly candidates: Candidates;
}

/** Chooses among candidates. Synchronous, does not throw; `choose` changes nothing, so it can be asked twice. */
export interface Policy {
  choose(request: RequestProfile, candidates: Candidates, context: PolicyContext): Choice;
  /** Absent: there is always room. */
  hasRoom?(request: RequestProfile, candidate: Candidate): boolean;
  /** Absent: the policy keeps no state. */
  routed?(event: RoutedEvent): void;
}

/** A policy and everything its users need: parsing, types, docs and JSON Schema come from `options`. */
export interface PolicyDefinition<Options = unknown> {
  /** As in the configuration file. */
  readonly name: string;
  /** One line: what it does. */
  readonly summary: string;
  /** What `Considered.score` is; the direction is part of it ("requests in flight, lowest wins"). */
  readonly score: string;
  readonly options: ZodType<Options>;
  create(options: Options): Policy;
}
