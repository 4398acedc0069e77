import type { Exclusion, RefusalReason } from "./decision.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import { EngineSpeed, SpeedScales } from "./engine-speed.ts";
import type { Availability } from "./health.ts";
import type { Account, Ledger } from "./ledger.ts";
import type { Candidate } from "./policy.ts";
import { PrefixIndex } from "./prefix-index.ts";
import type { RequestProfile } from "./request.ts";

/** One endpoint in its pool, with everything known and learned of it. */
export class Member implements Candidate {
  endpoint: Endpoint;
  readonly account: Account;
  readonly speed: EngineSpeed;
  readonly prefixes: PrefixIndex;
  signals: EngineSignals | undefined;
  availability: Availability = "unknown";
  /** Finishes what it has, takes nothing new. */
  isDraining = false;
  /** Undefined: not known yet, so it is tried with any model. */
  models: ReadonlySet<string> | undefined;

  constructor(endpoint: Endpoint, account: Account, scales: SpeedScales) {
    this.endpoint = endpoint;
    this.account = account;
    this.speed = new EngineSpeed(scales, endpoint.tokensPerSecond);
    this.prefixes = new PrefixIndex(endpoint.kvCapacityTokens);
  }

  get kvCapacityTokens(): number | undefined {
    return this.endpoint.kvCapacityTokens ?? this.signals?.kvCapacityTokens;
  }

  cachedTokens(request: RequestProfile): number {
    if (request.prefix === undefined) return 0;
    // An engine computes at least the last prompt token, whatever it holds.
    return Math.min(this.prefixes.matchedTokens(request.prefix), request.promptTokens - 1);
  }
}

/** Who may take a request, and why the others may not. */
export interface Eligibility {
  readonly members: readonly Member[];
  readonly excluded: readonly { readonly endpoint: string; readonly why: Exclusion }[];
}

/** Ordered membership. Endpoints that stay keep everything learned about them. */
export class Pool {
  readonly #ledger: Ledger;
  readonly #scales = new SpeedScales();
  #members: readonly Member[] = [];

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  get members(): readonly Member[] {
    return this.#members;
  }

  /** Undefined: no such endpoint, or not any more. */
  member(endpointId: string): Member | undefined {
    return this.#members.find((member) => member.endpoint.id === endpointId);
  }

  /** Makes the pool consist of `endpoints`, in this order. */
  setEndpoints(endpoints: readonly Endpoint[]): void {
    const before = new Map(this.#members.map((member) => [member.endpoint.id, member]));
    this.#members = endpoints.map((endpoint) => {
      const kept = before.get(endpoint.id);
      before.delete(endpoint.id);
      if (kept === undefined) return new Member(endpoint, this.#ledger.account(endpoint.id), this.#scales);
      kept.endpoint = endpoint;
      kept.speed.configure(endpoint.tokensPerSecond);
      kept.prefixes.resize(kept.kvCapacityTokens);
      return kept;
    });
    for (const removed of before.keys()) this.#ledger.forget(removed);
  }

  eligible(request: RequestProfile, tried: readonly string[]): Eligibility {
    const members: Member[] = [];
    const excluded: { endpoint: string; why: Exclusion }[] = [];
    for (const member of this.#members) {
      const why = exclusionOf(member, request, tried);
      if (why === undefined) members.push(member);
      else excluded.push({ endpoint: member.endpoint.id, why });
    }
    return { members, excluded };
  }
}

function exclusionOf(member: Member, request: RequestProfile, tried: readonly string[]): Exclusion | undefined {
  if (member.isDraining) return "draining";
  if (member.endpoint.weight === 0) return "weight_zero";
  if (member.availability !== "ready" && member.availability !== "unknown") return member.availability;
  if (!serves(member, request.model)) return "model_not_served";
  if (tried.includes(member.endpoint.id)) return "tried";
  return undefined;
}

/** A request that names no model leaves the choice to the engine. */
function serves(member: Member, model: string): boolean {
  return model === "" || member.models === undefined || member.models.has(model);
}

/** The most telling reason: what was tried, then what could serve but is not up, then the model, then nothing at all. */
export function refusalOf(excluded: Eligibility["excluded"]): RefusalReason {
  const reasons = new Set(excluded.map(({ why }) => why));
  if (reasons.has("no_room")) return "saturated";
  if (reasons.has("tried")) return "exhausted";
  if (reasons.has("down") || reasons.has("loading") || reasons.has("auth_failed")) return "unavailable";
  if (reasons.has("model_not_served")) return "model_not_served";
  return "no_endpoint";
}
