import { Binder } from "./binder.ts";
import type { Decision, Forecast, Outcome, Release } from "./decision.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import { Flight } from "./flight.ts";
import type { Availability } from "./health.ts";
import { DEFAULT_HOLDING_LIMITS, Holding, type HoldingLimits } from "./holding.ts";
import { type Lease, Ledger } from "./ledger.ts";
import { OutputLengths } from "./output-lengths.ts";
import { createPolicy } from "./policies/index.ts";
import type { PolicyDefinition } from "./policy.ts";
import { type Member, Pool } from "./pool.ts";
import { PromptRatios } from "./prompt-ratios.ts";
import { PeekableRandom, type Random, seededRandom } from "./random.ts";
import type { RequestProfile } from "./request.ts";
import { ReuseOdds } from "./reuse-odds.ts";
import { Router } from "./router.ts";
import type { SharedWork } from "./shared-work.ts";
import { Sharing } from "./sharing.ts";
import { Ticket } from "./ticket.ts";

/** How a balancer is made. */
export interface BalancerOptions {
  /** Name of the policy, as in docs/policies, or a policy of the caller's own; undefined: `least_delay`. */
  readonly policy?: string | PolicyDefinition;
  /** The policy's own options; what is left out takes its default. */
  readonly policyOptions?: unknown;
  readonly endpoints: readonly Endpoint[];
  /** Undefined: a fixed seed, so that the same calls give the same choices. */
  readonly random?: Random;
  /** What is left out is that of `DEFAULT_HOLDING_LIMITS`. */
  readonly holding?: Partial<HoldingLimits>;
  /** What becomes of a request when the policy has room for it nowhere; undefined: it is refused. */
  readonly whenFull?: "refuse" | "hold";
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
  /** Learned lengths of outputs; profiles are made with it. */
  readonly outputLengths: OutputLengths = new OutputLengths();
  /** Learned bytes per prompt token; profiles are made with it. */
  readonly promptRatios: PromptRatios = new PromptRatios();
  readonly #holding: Holding;
  readonly #pool: Pool;
  readonly #random: PeekableRandom;
  readonly #router: Router;
  readonly #binder: Binder;
  readonly #sharing: Sharing;

  /** @throws RangeError when the policy is unknown or its options do not fit; the message lists what would. */
  constructor(options: BalancerOptions) {
    const { policy = "least_delay", policyOptions = {} } = options;
    const ledger = new Ledger();
    this.#holding = new Holding({ ...DEFAULT_HOLDING_LIMITS, ...options.holding });
    this.#random = new PeekableRandom(options.random ?? seededRandom(1));
    this.#pool = new Pool(ledger, this.#holding, new ReuseOdds());
    const name = typeof policy === "string" ? policy : policy.name;
    this.#sharing = new Sharing(this.#pool, ledger);
    this.#router = new Router(name, createPolicy(policy, policyOptions), this.#pool, ledger, this.#sharing);
    const binding = { whenFull: options.whenFull ?? "refuse", random: this.#random };
    this.#binder = new Binder(this.#router, this.#pool, this.#holding, binding);
    this.#pool.setEndpoints(options.endpoints);
  }

  get policyName(): string {
    return this.#router.policyName;
  }

  /** The endpoints as policies see them, for reading. */
  get members(): readonly Member[] {
    return this.#pool.members;
  }

  /** Requests that are held now. */
  get heldRequests(): number {
    return this.#holding.size;
  }

  /** Replaces the membership; endpoints that stay keep their work and everything learned. */
  setEndpoints(endpoints: readonly Endpoint[], nowMs: number): readonly Release[] {
    const before = this.#pool.members.map(({ endpoint }) => endpoint.id);
    this.#pool.setEndpoints(endpoints);
    const releases: Release[] = [];
    for (const id of before) {
      if (this.#pool.member(id) !== undefined) continue;
      releases.push(...this.#binder.reassign(id, nowMs));
      this.#holding.forget(id);
    }
    releases.push(...this.#binder.reassign(undefined, nowMs));
    for (const member of this.#pool.members) releases.push(...this.#changed(member, nowMs));
    return releases;
  }

  /**
   * Chooses an endpoint and opens the lease in one step, or holds the request until one can begin on it. `tried`: ids
   * this request has already failed on. `bodyBytes`: what the caller keeps in memory for it while it is held.
   */
  decide(request: RequestProfile, nowMs: number, tried: readonly string[] = [], bodyBytes: number = 0): Decision {
    return this.#binder.bind(new Ticket(request, tried, nowMs, bodyBytes), nowMs);
  }

  /** What `decide` would answer, with nothing changed. */
  explain(request: RequestProfile, nowMs: number, bodyBytes: number = 0): Forecast {
    return this.#binder.forecast(new Ticket(request, [], nowMs, bodyBytes), this.#random.peek(), nowMs);
  }

  /** The client of a held request is gone: whoever waited behind it may go. Once it is released it does nothing. */
  leave(ticket: Ticket, nowMs: number): readonly Release[] {
    return this.#binder.leave(ticket, nowMs);
  }

  /** The first token of the answer was seen. Later calls for the same lease do nothing. */
  firstToken(lease: Lease, nowMs: number): readonly Release[] {
    const flight = flightOf(lease);
    if (flight === undefined || lease.isRunning) return NO_RELEASES;
    flight.firstToken(nowMs);
    return this.#moved(flight, nowMs);
  }

  /** `tokens` more were seen. Before the first token and after the end it does nothing. */
  progress(lease: Lease, tokens: number, nowMs: number): void {
    flightOf(lease)?.progress(tokens, nowMs);
  }

  /** The request is over at its endpoint, however it ended. Later calls for the same lease do nothing. */
  finish(lease: Lease, outcome: Outcome, nowMs: number): readonly Release[] {
    const flight = flightOf(lease);
    if (flight === undefined) return NO_RELEASES;
    lease.holder = undefined;
    this.#router.unseen.remove(flight);
    if (outcome.kind === "completed") this.#learnSizes(flight.request, outcome);
    flight.finish(outcome, nowMs);
    this.#sharing.ended(flight);
    return this.#moved(flight, nowMs);
  }

  /** Something was learned about an endpoint; unknown endpoints are ignored, they may just have left. */
  observe(observation: Observation, nowMs: number): readonly Release[] {
    const member = this.#pool.member(observation.endpointId);
    if (member === undefined) return NO_RELEASES;
    switch (observation.kind) {
      case "availability":
        // A restarted engine comes back with an empty cache.
        if (observation.availability === "down" || observation.availability === "loading") member.mirror.clear();
        member.availability = observation.availability;
        break;
      case "signals":
        member.signals = observation.signals;
        // A report that leaves the size out does not make the cache smaller.
        if (member.kvCapacityTokens !== undefined) member.mirror.resize(member.kvCapacityTokens);
        return NO_RELEASES;
      case "models":
        member.models = observation.models;
        break;
      case "restarted":
        member.mirror.clear();
        break;
      case "draining":
        member.isDraining = observation.isDraining;
    }
    return this.#changed(member, nowMs);
  }

  /** Moves the requests whose tokens are not seen to where their endpoint's speed puts them, and releases whom that lets go. */
  tick(nowMs: number): readonly Release[] {
    for (const flight of this.#router.unseen.items()) flight.project(nowMs);
    return this.#binder.tick(nowMs);
  }

  /** What this balancer tells others in front of the same endpoints. It holds what was sent since it was last asked. */
  share(nowMs: number): SharedWork {
    return this.#sharing.share(nowMs);
  }

  /** What the balancer `from` said of its work, in place of what it said before; undefined: it is gone. */
  adopt(from: string, work: SharedWork | undefined, nowMs: number): readonly Release[] {
    this.#sharing.adopt(from, work, nowMs);
    return this.#binder.tick(nowMs);
  }

  /**
   * When `tick` is due because time alone releases a held request: a prefill whose end is not seen is believed to be
   * done, this balancer's own or what others told, or somebody has waited too long. Undefined: nobody is held.
   */
  nextWakeMs(nowMs: number): number | undefined {
    let wakeMs = this.#binder.overdueAtMs;
    if (wakeMs === undefined) return undefined;
    for (const { prefillDueMs } of this.#router.unseen.items()) wakeMs = Math.min(wakeMs, prefillDueMs ?? wakeMs);
    for (const { held, othersPrefillDueMs: dueMs } of this.#pool.members) {
      if (held.first !== undefined && dueMs !== undefined && dueMs > nowMs) wakeMs = Math.min(wakeMs, dueMs);
    }
    return wakeMs;
  }

  /** A flight moved its endpoint on. It may have left the pool, or be another server of the same account by now. */
  #moved({ member: { endpoint } }: Flight, nowMs: number): readonly Release[] {
    const member = this.#pool.member(endpoint.id);
    return member === undefined ? NO_RELEASES : this.#binder.moved(member, nowMs);
  }

  /** Who may go to `member` has changed. */
  #changed(member: Member, nowMs: number): readonly Release[] {
    if (this.#holding.size === 0) return NO_RELEASES;
    return [
      ...this.#binder.reassign(member.endpoint.id, nowMs),
      ...this.#binder.reassign(undefined, nowMs),
      ...this.#binder.moved(member, nowMs),
    ];
  }

  #learnSizes(request: RequestProfile, { promptTokens, outputTokens }: Outcome): void {
    if (promptTokens !== undefined && request.textBytes !== undefined) {
      this.promptRatios.observe(request.model, request.textBytes, promptTokens);
    }
    if (outputTokens !== undefined && request.output.meanTokens > 0) this.outputLengths.observe(request, outputTokens);
  }
}

/** Undefined: the lease is closed. */
function flightOf(lease: Lease): Flight | undefined {
  return lease.holder instanceof Flight ? lease.holder : undefined;
}

const NO_RELEASES: readonly Release[] = [];

/** The library's door: the same class the gateway drives. */
export function createBalancer(options: BalancerOptions): Balancer {
  return new Balancer(options);
}
