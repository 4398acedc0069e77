import { costOf } from "./cost.ts";
import type { Decision, Explanation } from "./decision.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import type { Availability } from "./health.ts";
import { type Lease, Ledger } from "./ledger.ts";
import { OutputLengths } from "./output-lengths.ts";
import { findPolicy } from "./policies/index.ts";
import type { Candidates, Policy } from "./policy.ts";
import { type Member, Pool, refusalOf } from "./pool.ts";
import { PromptRatios } from "./prompt-ratios.ts";
import { type Random, seededRandom } from "./random.ts";
import type { RequestProfile } from "./request.ts";

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

/** How a request ended at its endpoint. */
export interface Outcome {
  /** `completed`: the answer is whole. `failed`: the endpoint broke it. `aborted`: the client or the balancer left. */
  readonly kind: "completed" | "failed" | "aborted";
  /** As the engine counted; undefined: it did not say. */
  readonly promptTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

/** A routed request from the balancer's side: the lease, and what the balancer learns by when it moves. */
interface Flight {
  readonly request: RequestProfile;
  readonly member: Member;
  /** Of a plain decode step: undefined while prefill on the endpoint blurs the gap between tokens. */
  lastStepAtMs: number | undefined;
}

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
  readonly #random: Random;
  readonly #flights = new Map<Lease, Flight>();
  /** Open leases of requests whose tokens are not seen. */
  readonly #projected = new Set<Lease>();

  /** @throws when the policy is unknown or its options do not fit; the message lists what would. */
  constructor(options: BalancerOptions) {
    const definition = findPolicy(options.policy ?? "least_delay");
    this.policyName = definition.name;
    this.#policy = definition.create(definition.options.parse(options.policyOptions ?? {}));
    this.#random = options.random ?? seededRandom(1);
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
    const weighed = this.#weigh(request, nowMs, tried);
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
  explain(request: RequestProfile, nowMs: number): { readonly chosen: Endpoint | undefined; readonly explanation: Explanation } {
    const { chosen, explanation } = this.#weigh(request, nowMs, []);
    return { chosen: chosen?.endpoint, explanation };
  }

  /** The first token of the answer was seen. */
  firstToken(lease: Lease, nowMs: number): void {
    const flight = this.#flights.get(lease);
    if (flight === undefined || lease.isRunning) return;
    const { account } = flight.member;
    this.#learnPrefill(lease, flight.member, nowMs);
    lease.firstToken(nowMs);
    flight.lastStepAtMs = account.waitingRequests === 0 ? nowMs : undefined;
  }

  /** `tokens` more were seen. */
  progress(lease: Lease, tokens: number, nowMs: number): void {
    const flight = this.#flights.get(lease);
    if (flight === undefined || !lease.isRunning) return;
    const { account, speed } = flight.member;
    // A gap is one plain decode step only if no prefill shared it, neither at its start nor now.
    const isPlain = account.waitingRequests === 0 && account.prefillSinceMs <= (flight.lastStepAtMs ?? -1);
    if (isPlain && flight.lastStepAtMs !== undefined && tokens > 0) {
      speed.observeStep(account.runningRequests, account.contextTokens, (nowMs - flight.lastStepAtMs) / tokens);
    }
    flight.lastStepAtMs = account.waitingRequests === 0 ? nowMs : undefined;
    lease.progress(tokens, nowMs);
  }

  /** The request is over at its endpoint, however it ended. Later calls for the same lease do nothing. */
  finish(lease: Lease, outcome: Outcome, nowMs: number): void {
    const flight = this.#flights.get(lease);
    if (flight === undefined) return;
    if (outcome.kind === "completed") this.#learnFromWhole(lease, flight, outcome, nowMs);
    this.#flights.delete(lease);
    this.#projected.delete(lease);
    lease.close();
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
        member.prefixes.resize(member.kvCapacityTokens);
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
    for (const lease of this.#projected) {
      const flight = this.#flights.get(lease);
      if (flight === undefined) continue;
      const { account, speed } = flight.member;
      if (!lease.isRunning) {
        const prefillMs = speed.prefillMs(lease.cost.prefillTokens, lease.cost.prefillPairs);
        const startedAtMs = Math.max(lease.openedAtMs, account.prefillSinceMs);
        const firstTokenAtMs = startedAtMs + prefillMs + speed.decodeStepMs(account.runningRequests, account.contextTokens);
        if (flight.request.output.meanTokens > 0 && firstTokenAtMs <= nowMs) lease.firstToken(firstTokenAtMs);
      }
      if (lease.isRunning) {
        const stepMs = speed.decodeStepMs(account.runningRequests, account.contextTokens);
        const tokens = Math.floor((nowMs - lease.lastProgressMs) / stepMs);
        if (tokens > 0) lease.progress(tokens, lease.lastProgressMs + tokens * stepMs);
      }
    }
  }

  #weigh(request: RequestProfile, nowMs: number, tried: readonly string[]): Weighed {
    const { members, excluded } = this.#pool.eligible(request, tried);
    const { roomy, full } = this.#splitByRoom(request, members);
    const exclusions = full.length === 0 ? excluded : [...excluded, ...full];
    const [first, ...rest] = roomy;
    if (first === undefined) {
      const explanation = { policy: this.policyName, reason: "no endpoint can take it", considered: [], excluded: exclusions };
      return { chosen: undefined, explanation };
    }
    const candidates: readonly [Member, ...Member[]] = [first, ...rest];
    const choice = this.#policy.choose(request, candidates, { nowMs, random: this.#random });
    return {
      chosen: choice.chosen as Member,
      candidates,
      explanation: {
        policy: this.policyName,
        reason: choice.reason,
        considered: choice.considered,
        excluded: exclusions,
      },
    };
  }

  #splitByRoom(request: RequestProfile, members: readonly Member[]): { roomy: readonly Member[]; full: Explanation["excluded"] } {
    const policy = this.#policy;
    if (policy.hasRoom === undefined) return { roomy: members, full: [] };
    const roomy: Member[] = [];
    const full: { endpoint: string; why: "no_room" }[] = [];
    for (const member of members) {
      if (policy.hasRoom(request, member)) roomy.push(member);
      else full.push({ endpoint: member.endpoint.id, why: "no_room" });
    }
    return { roomy, full };
  }

  #open(request: RequestProfile, member: Member, nowMs: number): Lease {
    const cost = costOf(request, member.cachedTokens(request));
    const lease = this.#ledger.open(member.endpoint.id, cost, request.output, nowMs);
    this.#flights.set(lease, { request, member, lastStepAtMs: undefined });
    if (!request.isStreaming) this.#projected.add(lease);
    if (request.prefix !== undefined) member.prefixes.insert(request.prefix);
    return lease;
  }

  #learnPrefill(lease: Lease, { account, speed }: Member, nowMs: number): void {
    const startedAtMs = Math.max(lease.openedAtMs, account.prefillSinceMs);
    const { prefillTokens, prefillPairs } = lease.cost;
    speed.observePrefill(prefillTokens, prefillPairs, account.runningRequests, account.contextTokens, nowMs - startedAtMs);
  }

  #learnFromWhole(lease: Lease, { request, member }: Flight, outcome: Outcome, nowMs: number): void {
    const { promptTokens, outputTokens } = outcome;
    if (promptTokens !== undefined && request.textBytes !== undefined) {
      this.promptRatios.observe(request.model, request.textBytes, promptTokens);
    }
    if (outputTokens !== undefined && request.output.meanTokens > 0) this.outputLengths.observe(request, outputTokens);
    if (request.isStreaming) return;
    const { account, speed } = member;
    if (request.output.meanTokens === 0) {
      this.#learnPrefill(lease, member, nowMs);
    } else if (outputTokens !== undefined && outputTokens >= MIN_WHOLE_SAMPLE_TOKENS) {
      const prefillMs = speed.prefillMs(lease.cost.prefillTokens, lease.cost.prefillPairs);
      const decodingMs = nowMs - lease.openedAtMs - prefillMs;
      speed.observeStep(account.runningRequests, account.contextTokens, decodingMs / outputTokens);
    }
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

type Weighed =
  | { readonly chosen: Member; readonly candidates: Candidates; readonly explanation: Explanation }
  | { readonly chosen: undefined; readonly explanation: Explanation };

/** Below this the prefill, which is only estimated here, hides the decoding. */
const MIN_WHOLE_SAMPLE_TOKENS = 16;

/** Clients read whole seconds, and SDKs ignore what exceeds a minute. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 60_000;

/** The library's door: the same class the gateway drives. */
export function createBalancer(options: BalancerOptions): Balancer {
  return new Balancer(options);
}
