import { costOf } from "./cost.ts";
import type { Decision, Explanation, Outcome } from "./decision.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import { Flight, firstTokenDueMs } from "./flight.ts";
import type { Availability } from "./health.ts";
import { type Lease, Ledger } from "./ledger.ts";
import { OutputLengths } from "./output-lengths.ts";
import { createPolicy } from "./policies/index.ts";
import type { Candidates, Policy } from "./policy.ts";
import { type Member, Pool, refusalOf } from "./pool.ts";
import { PromptRatios } from "./prompt-ratios.ts";
import { PeekableRandom, type Random, seededRandom } from "./random.ts";
import type { RequestProfile } from "./request.ts";
import { SlotList } from "./slot-list.ts";

/** How a balancer is made. */
export interface BalancerOptions {
  /** Name of the policy, as in docs/policies; undefined: `least_delay`. */
  readonly policy?: string;
  /** The policy's own options; what is left out takes its default. */
  readonly policyOptions?: unknown;
  readonly endpoints: readonly Endpoint[];
  /** Undefined: a fixed seed, so that the same calls give the same choices. */
  readonly random?: Random;
}

/** Something learned about an endpoint from outside the traffic. */
export type Observation =
  | { readonly kind: "availability"; readonly endpointId: string; readonly availability: Availability }
  | { readonly kind: "signals"; readonly endpointId: string; readonly signals: EngineSignals }
  /** Undefined models: any. */
  | { readonly kind: "models"; readonly endpointId: string; readonly models: ReadonlySet<string> | undefined }
  /** The engine's process is a new one, or it dropped its prefix cache. */
  | { readonly kind: "restarted"; readonly endpointId: string }
  | { readonly kind: "draining"; readonly endpointId: string; readonly isDraining: boolean };

/**
 * Pool, ledger and policy behind one door. Synchronous and deterministic: the time is an argument,
 * randomness was passed in. Gateway, picker and simulator drive this same class.
 */
export class Balancer {
  readonly policyName: string;
  /** Learned lengths of outputs; profiles are made with it. */
  readonly outputLengths: OutputLengths = new OutputLengths();
  /** Learned bytes per prompt token; profiles are made with it. */
  readonly promptRatios: PromptRatios = new PromptRatios();
  readonly #policy: Policy;
  readonly #ledger = new Ledger();
  readonly #pool = new Pool(this.#ledger);
  readonly #random: PeekableRandom;
  /** Flights whose tokens are not seen. */
  readonly #unseen = new SlotList<Flight>();

  /** @throws RangeError when the policy is unknown or its options do not fit; the message lists what would. */
  constructor(options: BalancerOptions) {
    this.policyName = options.policy ?? "least_delay";
    this.#policy = createPolicy(this.policyName, options.policyOptions ?? {});
    this.#random = new PeekableRandom(options.random ?? seededRandom(1));
    this.#pool.setEndpoints(options.endpoints);
  }

  /** The endpoints as policies see them, for reading. */
  get members(): readonly Member[] {
    return this.#pool.members;
  }

  /** Replaces the membership; endpoints that stay keep their work and everything learned. */
  setEndpoints(endpoints: readonly Endpoint[]): void {
    this.#pool.setEndpoints(endpoints);
  }

  /** Chooses an endpoint and opens the lease in one step. `tried`: ids this request has already failed on. */
  decide(request: RequestProfile, nowMs: number, tried: readonly string[] = []): Decision {
    const weighed = this.#weigh(request, nowMs, tried, this.#random);
    if (weighed.chosen === undefined) {
      return {
        kind: "refused",
        reason: refusalOf(weighed.explanation.excluded),
        retryAfterMs: this.#retryAfterMs(),
        explanation: weighed.explanation,
      };
    }
    const { chosen, candidates, explanation } = weighed;
    const lease = this.#open(request, chosen, nowMs);
    this.#policy.routed?.({ request, chosen, candidates });
    return { kind: "routed", endpoint: chosen.endpoint, lease, explanation };
  }

  /** What `decide` would answer, with nothing changed. */
  explain(
    request: RequestProfile,
    nowMs: number,
  ): { readonly chosen: Endpoint | undefined; readonly explanation: Explanation } {
    const { chosen, explanation } = this.#weigh(request, nowMs, [], this.#random.peek());
    return { chosen: chosen?.endpoint, explanation };
  }

  /** The first token of the answer was seen. Later calls for the same lease do nothing. */
  firstToken(lease: Lease, nowMs: number): void {
    flightOf(lease)?.firstToken(nowMs);
  }

  /** `tokens` more were seen. Before the first token and after the end it does nothing. */
  progress(lease: Lease, tokens: number, nowMs: number): void {
    flightOf(lease)?.progress(tokens, nowMs);
  }

  /** The request is over at its endpoint, however it ended. Later calls for the same lease do nothing. */
  finish(lease: Lease, outcome: Outcome, nowMs: number): void {
    const flight = flightOf(lease);
    if (flight === undefined) return;
    lease.holder = undefined;
    this.#unseen.remove(flight);
    if (outcome.kind === "completed") this.#learnSizes(flight.request, outcome);
    flight.finish(outcome, nowMs);
  }

  /** Something was learned about an endpoint; unknown endpoints are ignored, they may just have left. */
  observe(observation: Observation): void {
    const member = this.#pool.member(observation.endpointId);
    if (member === undefined) return;
    switch (observation.kind) {
      case "availability":
        // A restarted engine comes back with an empty cache.
        if (observation.availability === "down" || observation.availability === "loading") member.prefixes.clear();
        member.availability = observation.availability;
        return;
      case "signals":
        member.signals = observation.signals;
        // A report that leaves the size out does not make the cache smaller.
        if (member.kvCapacityTokens !== undefined) member.prefixes.resize(member.kvCapacityTokens);
        return;
      case "models":
        member.models = observation.models;
        return;
      case "restarted":
        member.prefixes.clear();
        return;
      case "draining":
        member.isDraining = observation.isDraining;
    }
  }

  /** Moves the requests whose tokens are not seen to where their endpoint's speed puts them by now. */
  tick(nowMs: number): void {
    for (const flight of this.#unseen.items()) flight.project(nowMs);
  }

  #weigh(request: RequestProfile, nowMs: number, tried: readonly string[], random: Random): Weighed {
    const { members, full, excluded } = this.#pool.eligible(request, tried, this.#policy);
    const context = { nowMs, random };
    if (!isNonEmpty(members)) {
      const [reason, considered] = isNonEmpty(full)
        ? ["no endpoint has room", this.#policy.choose(request, full, context).considered]
        : ["no endpoint can take it", []];
      return { chosen: undefined, explanation: { policy: this.policyName, reason, considered, excluded } };
    }
    const { chosen, reason, considered } = this.#policy.choose(request, members, context);
    return {
      // Candidates are the pool's own members.
      chosen: chosen as Member,
      candidates: members,
      explanation: { policy: this.policyName, reason, considered, excluded },
    };
  }

  #open(request: RequestProfile, member: Member, nowMs: number): Lease {
    const cost = costOf(request, member.cachedTokens(request));
    const dueMs = firstTokenDueMs(member, cost, nowMs);
    const lease = this.#ledger.open(member.endpoint.id, cost, request.output, nowMs);
    const flight = new Flight(request, lease, member, dueMs);
    lease.holder = flight;
    if (flight.isUnseen) this.#unseen.add(flight);
    if (request.prefix !== undefined) member.prefixes.insert(request.prefix);
    return lease;
  }

  #learnSizes(request: RequestProfile, { promptTokens, outputTokens }: Outcome): void {
    if (promptTokens !== undefined && request.textBytes !== undefined) {
      this.promptRatios.observe(request.model, request.textBytes, promptTokens);
    }
    if (outputTokens !== undefined && request.output.meanTokens > 0) this.outputLengths.observe(request, outputTokens);
  }

  /** The time in which the endpoint with the least work finishes a request's worth of it. */
  #retryAfterMs(): number {
    let leastMs = Number.POSITIVE_INFINITY;
    for (const { account, speed } of this.#pool.members) {
      if (account.requests === 0) continue;
      leastMs = Math.min(leastMs, (1000 * account.outputTokens) / speed.tokensPerSecond / account.requests);
    }
    return Math.min(MAX_RETRY_AFTER_MS, Math.max(MIN_RETRY_AFTER_MS, Number.isFinite(leastMs) ? leastMs : 0));
  }
}

/** Undefined: the lease is closed. */
function flightOf(lease: Lease): Flight | undefined {
  return lease.holder instanceof Flight ? lease.holder : undefined;
}

type Weighed =
  | { readonly chosen: Member; readonly candidates: Candidates; readonly explanation: Explanation }
  | { readonly chosen: undefined; readonly explanation: Explanation };

function isNonEmpty<Item>(items: readonly Item[]): items is readonly [Item, ...Item[]] {
  return items.length > 0;
}

/** Clients read whole seconds, and SDKs ignore what exceeds a minute. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 60_000;

/** The library's door: the same class the gateway drives. */
export function createBalancer(options: BalancerOptions): Balancer {
  return new Balancer(options);
}
