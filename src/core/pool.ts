import type { Account } from "./account.ts";
import type { Exclusion, RefusalReason } from "./decision.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import { EngineSpeed } from "./engine-speed.ts";
import { type Availability, takesTraffic } from "./health.ts";
import type { Holding, HoldingLine } from "./holding.ts";
import { KvMirror } from "./kv-mirror.ts";
import type { Ledger } from "./ledger.ts";
import type { Candidate, EvictionVisitor, Policy } from "./policy.ts";
import type { RequestProfile } from "./request.ts";
import type { ReuseOdds } from "./reuse-odds.ts";
import { SpeedObserver } from "./speed-observer.ts";
import { SpeedPool } from "./speed-pool.ts";

/** One endpoint in its pool, with everything known and learned of it. */
export class Member implements Candidate {
  endpoint: Endpoint;
  readonly account: Account;
  readonly speed: EngineSpeed;
  /** Learns `speed` from the requests that run there. */
  readonly observer: SpeedObserver;
  readonly mirror: KvMirror;
  /** Requests held for it. */
  readonly held: HoldingLine;
  signals: EngineSignals | undefined;
  availability: Availability = "unknown";
  /** Finishes what it has, takes nothing new. */
  isDraining = false;
  /** Undefined: not known yet, so it is tried with any model. */
  models: ReadonlySet<string> | undefined;

  constructor(endpoint: Endpoint, account: Account, shared: PoolKnowledge, held: HoldingLine) {
    this.endpoint = endpoint;
    this.account = account;
    this.speed = new EngineSpeed(shared.speeds, endpoint.tokensPerSecond);
    this.observer = new SpeedObserver(account, this.speed);
    this.mirror = new KvMirror(endpoint.kvCapacityTokens, shared.reuse);
    this.held = held;
  }

  get kvCapacityTokens(): number | undefined {
    return this.endpoint.kvCapacityTokens ?? this.signals?.kvCapacityTokens;
  }

  get kvTokens(): number {
    const { contextTokens, waitingPromptTokens, requests } = this.account;
    // Half of each request's last block is empty, on the mean.
    const unfilledTokens = (requests * (this.signals?.kvBlockTokens ?? KV_BLOCK_TOKENS)) / 2;
    return contextTokens + waitingPromptTokens - this.mirror.sharedTokens + unfilledTokens;
  }

  /** When the prefill that other balancers spoke of is believed to be done; undefined: there is none. */
  get othersPrefillDueMs(): number | undefined {
    const { othersPrefillTokens, othersPrefillPairs, prefillSinceMs } = this.account;
    if (othersPrefillTokens === 0) return undefined;
    return prefillSinceMs + this.speed.prefillMs(othersPrefillTokens, othersPrefillPairs);
  }

  cachedTokens(request: RequestProfile): number {
    if (request.prefix === undefined) return 0;
    // An engine computes at least the last prompt token, whatever it holds.
    return Math.max(0, Math.min(this.mirror.matchedTokens(request.prefix), request.promptTokens - 1));
  }

  visitEvicted(tokens: number, nowMs: number, visit: EvictionVisitor): void {
    this.mirror.visitEvicted(tokens, this.kvTokens, nowMs, visit);
  }
}

/** What the members of a pool learn together. */
export interface PoolKnowledge {
  readonly speeds: SpeedPool;
  readonly reuse: ReuseOdds;
}

/** The default of vLLM. */
const KV_BLOCK_TOKENS = 16;

/** Who may take a request, and why the others may not. */
export interface Eligibility {
  readonly members: readonly Member[];
  /** Those excluded for want of room alone: what a policy says of them explains a saturated pool. */
  readonly full: readonly Member[];
  readonly excluded: readonly { readonly endpoint: string; readonly why: Exclusion }[];
}

/** Ordered membership. Endpoints that stay keep everything learned about them. */
export class Pool {
  readonly #ledger: Ledger;
  readonly #holding: Holding;
  readonly #shared: PoolKnowledge;
  #members: ReadonlyMap<string, Member> = new Map();
  #ordered: readonly Member[] = [];

  constructor(ledger: Ledger, holding: Holding, reuse: ReuseOdds) {
    this.#ledger = ledger;
    this.#holding = holding;
    this.#shared = { speeds: new SpeedPool(), reuse };
  }

  get members(): readonly Member[] {
    return this.#ordered;
  }

  /** Undefined: no such endpoint, or not any more. */
  member(endpointId: string): Member | undefined {
    return this.#members.get(endpointId);
  }

  /**
   * Makes the pool consist of `endpoints`, in this order. An id that now stands for another URL is
   * another server: nothing learned of the old one is kept but its work in flight.
   * @throws RangeError when two of them have the same id, or a number is not one that can be meant.
   */
  setEndpoints(endpoints: readonly Endpoint[]): void {
    checkIds(endpoints);
    for (const endpoint of endpoints) checkNumbers(endpoint);
    const members = new Map<string, Member>();
    for (const endpoint of endpoints) members.set(endpoint.id, this.#keep(endpoint) ?? this.#add(endpoint));
    for (const [id, member] of this.#members) {
      if (members.get(id) !== member) member.speed.leave();
      if (!members.has(id)) this.#ledger.forget(id);
    }
    this.#members = members;
    this.#ordered = [...members.values()];
  }

  /** Every member is either in `members` or excluded. */
  eligible(request: RequestProfile, tried: readonly string[], policy: Pick<Policy, "hasRoom">): Eligibility {
    const able: Member[] = [];
    const excluded: { endpoint: string; why: Exclusion }[] = [];
    for (const member of this.#ordered) {
      const why = exclusionOf(member, request, tried);
      if (why === undefined) able.push(member);
      else excluded.push({ endpoint: member.endpoint.id, why });
    }
    if (policy.hasRoom === undefined) return { members: able, full: [], excluded };
    const members: Member[] = [];
    const full: Member[] = [];
    for (const member of able) {
      if (policy.hasRoom(request, member, able)) {
        members.push(member);
      } else {
        full.push(member);
        excluded.push({ endpoint: member.endpoint.id, why: "no_room" });
      }
    }
    return { members, full, excluded };
  }

  /** Whether `member` may take the request, room aside: what is asked before anything is priced. */
  couldTake(member: Member, request: RequestProfile, tried: readonly string[]): boolean {
    return exclusionOf(member, request, tried) === undefined;
  }

  #keep(endpoint: Endpoint): Member | undefined {
    const kept = this.#members.get(endpoint.id);
    if (kept?.endpoint.url !== endpoint.url) return undefined;
    kept.endpoint = endpoint;
    kept.speed.configure(endpoint.tokensPerSecond);
    kept.mirror.resize(kept.kvCapacityTokens);
    return kept;
  }

  #add(endpoint: Endpoint): Member {
    const { id } = endpoint;
    return new Member(endpoint, this.#ledger.account(id), this.#shared, this.#holding.line(id));
  }
}

function checkIds(endpoints: readonly Endpoint[]): void {
  const seen = new Set<string>();
  for (const { id } of endpoints) {
    if (seen.has(id)) throw new RangeError(`two endpoints have the id "${id}"`);
    seen.add(id);
  }
}

/** A configuration file was checked already; a caller of the library may have computed these. */
function checkNumbers({ id, weight, tokensPerSecond, kvCapacityTokens }: Endpoint): void {
  if (!Number.isFinite(weight) || weight < 0) {
    throw new RangeError(`endpoint "${id}": weight must be a finite number of at least 0, not ${weight}`);
  }
  for (const [name, value] of Object.entries({ tokensPerSecond, kvCapacityTokens })) {
    if (value === undefined || (Number.isFinite(value) && value > 0)) continue;
    throw new RangeError(`endpoint "${id}": ${name} must be a finite number above 0 or undefined, not ${value}`);
  }
}

/** What could not serve the model comes first, so that every other reason is about an endpoint that could. */
function exclusionOf(member: Member, request: RequestProfile, tried: readonly string[]): Exclusion | undefined {
  if (!serves(member, request.model)) return "model_not_served";
  if (member.isDraining) return "draining";
  if (member.endpoint.weight === 0) return "weight_zero";
  if (!takesTraffic(member.availability)) return member.availability;
  return tried.includes(member.endpoint.id) ? "tried" : undefined;
}

/** A request that names no model leaves the choice to the engine. */
function serves(member: Member, model: string): boolean {
  return model === "" || member.models === undefined || member.models.has(model);
}

/** The most telling reason: the one that says how near an endpoint came to taking the request. */
export function refusalOf(excluded: Eligibility["excluded"]): RefusalReason {
  const reasons = new Set(excluded.map(({ why }) => why));
  if (reasons.has("no_room")) return "saturated";
  if (reasons.has("tried")) return "exhausted";
  if (reasons.has("down") || reasons.has("loading") || reasons.has("auth_failed")) return "unavailable";
  if (reasons.has("draining") || reasons.has("weight_zero")) return "no_endpoint";
  return reasons.has("model_not_served") ? "model_not_served" : "no_endpoint";
}
