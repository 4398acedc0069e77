import type { ZodType } from "zod";
import type { Account } from "./account.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import type { EngineCoefficients } from "./engine-coefficients.ts";
import type { EngineSpeed } from "./engine-speed.ts";
import type { Random } from "./random.ts";
import type { RequestProfile } from "./request.ts";
import type { HoldingPlace } from "./ticket.ts";

/** An endpoint as a policy sees it: live and read-only. A policy never keeps one past its call. */
export interface Candidate {
  readonly endpoint: Endpoint;
  /** Work in flight there, of this balancer and as others told of theirs. */
  readonly account: Account;
  /** How fast it is: configured or learned. */
  readonly speed: EngineSpeed;
  /**
   * `speed.coefficients`, at hand for `choose` and `hasRoom`, which read them of every endpoint. They are brought up to
   * date before a decision; at any other time ask `speed`.
   */
  readonly coefficients: EngineCoefficients;
  /** What the engine last reported; undefined: nothing yet. */
  readonly signals: EngineSignals | undefined;
  /** KV cache size in tokens, configured or reported; undefined: unknown. */
  readonly kvCapacityTokens: number | undefined;
  /** KV tokens that the requests in flight take there, what they share counted once and blocks counted whole. */
  readonly kvTokens: number;
  /** KV tokens that are cached there and that no request in flight uses: they go when room is needed. */
  readonly evictableKvTokens: number;
  /** Requests assigned to it that the balancer holds back. */
  readonly held: HeldWork;
  /** Prompt tokens of `request` believed to be in its prefix cache. */
  cachedTokens(request: RequestProfile): number;
  /**
   * What `tokens` more KV tokens would push out of its prefix cache, least recently used first; `visit` gets each block.
   * Unknown KV size: nothing.
   */
  visitEvicted(tokens: number, nowMs: number, visit: EvictionVisitor): void;
}

/** Requests held for one endpoint: the more urgent go first, and of one urgency those with the smaller key. */
export interface HeldWork {
  readonly requests: number;
  /** Work of those that go before a request with this key. */
  aheadOf(key: number, urgency: number): HeldPrefill;
  /** How many go after it. */
  countBehind(key: number, urgency: number): number;
}

/** Prefill that waits at the balancer. */
export interface HeldPrefill {
  readonly prefillTokens: number;
  /** Attention pairs of it. */
  readonly prefillPairs: number;
}

/** One block that would go: its tokens, the tokens of the prompt before it, and how often it is still to be used. */
export type EvictionVisitor = (blockTokens: number, startTokens: number, usesToCome: number) => void;

/** At least one candidate, by type: a policy never meets an empty list. */
export type Candidates = readonly [Candidate, ...Candidate[]];

export interface PolicyContext {
  readonly nowMs: number;
  readonly random: Random;
  /** When the request came: before now, if it is held and decided again. */
  readonly arrivedAtMs: number;
  /** How urgent it is: those that are held and less urgent go after it, whatever their keys. */
  readonly urgency: number;
  /** Where it is held at this moment; undefined: nowhere. */
  readonly place: HoldingPlace | undefined;
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
  /**
   * Every candidate that was compared, in the order given, as it was then. Mostly nobody reads it: with many candidates
   * it is better written out by a getter.
   */
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

/**
 * Late binding: the chosen endpoint may not be able to begin on the request yet. Then it is held for that endpoint, in
 * the order of its key, and decided again when something there moves.
 */
export interface LateBinding {
  /** Whether the candidate has memory for the request. One that has nothing to do always has. */
  fits(request: RequestProfile, candidate: Candidate): boolean;
  /** Whether the candidate can begin on the request now: it fits, and little is ahead of it. */
  canBegin(request: RequestProfile, candidate: Candidate, nowMs: number): boolean;
  /** Smallest first: its place among those held for the candidate. In ms, so that waiting counts. */
  holdKey(request: RequestProfile, candidate: Candidate, arrivedAtMs: number): number;
}

/** Chooses among candidates. Synchronous, does not throw; `choose` changes nothing, so it can be asked twice. */
export interface Policy {
  choose(request: RequestProfile, candidates: Candidates, context: PolicyContext): Choice;
  /** Who has none is no candidate. `pool`: all who could take it but for this. Absent: there is always room. */
  hasRoom?(request: RequestProfile, candidate: Candidate, pool: readonly Candidate[]): boolean;
  /** Where no candidate has room and the pool holds requests until one has: smallest first. Absent: in order of arrival. */
  queueKey?(request: RequestProfile, arrivedAtMs: number): number;
  /** Absent: a request goes to the endpoint chosen, at once. */
  readonly lateBinding?: LateBinding;
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
