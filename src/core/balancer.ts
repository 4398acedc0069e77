import { Binder } from "./binder.ts";
import type { Decision, Forecast, Outcome, RefusalReason, Release } from "./decision.ts";
import { lastingExclusionOf } from "./eligibility.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import { Flight } from "./flight.ts";
import type { Availability } from "./health.ts";
import { type HoldOrder, keyOrder } from "./hold-order.ts";
import { DEFAULT_HOLDING_LIMITS, Holding, type HoldingLimits } from "./holding.ts";
import { type Lease, Ledger } from "./ledger.ts";
import type { Member } from "./member.ts";
import { OutputLengths } from "./output-lengths.ts";
import { createPolicy } from "./policies/index.ts";
import type { PolicyDefinition } from "./policy.ts";
import { Pool, type PoolOptions } from "./pool.ts";
import { PromptRatios } from "./prompt-ratios.ts";
import { PeekableRandom, type Random, seededRandom } from "./random.ts";
import type { Priority, RequestProfile } from "./request.ts";
import { ReuseOdds } from "./reuse-odds.ts";
import { Router } from "./router.ts";
import type { SharedWork } from "./shared-work.ts";
import { Sharing } from "./sharing.ts";
import type { Ticket } from "./ticket.ts";

/** How a balancer is made. */
export interface BalancerOptions extends PoolOptions {
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
  /** In which order held requests go; undefined: by the policy's key alone. */
  readonly order?: HoldOrder;
}

/** What of a balancer may change while it works. */
export type BalancerChange = Pick<BalancerOptions, "policy" | "policyOptions" | "holding"> & PoolOptions;

/** Something learned about an endpoint from outside the traffic. */
export type Observation =
  | { readonly kind: "availability"; readonly endpointId: string; readonly availability: Availability }
  | { readonly kind: "signals"; readonly endpointId: string; readonly signals: EngineSignals }
  /** Undefined models: any. */
  | { readonly kind: "models"; readonly endpointId: string; readonly models: ReadonlySet<string> | undefined }
  /** The engine's process is a new one, or it dropped its prefix cache. */
  | { readonly kind: "restarted"; readonly endpointId: string }
  | { readonly kind: "draining"; readonly endpointId: string; readonly isDraining: boolean }
  /** What its answer to the request of `lease` says of it: that it is well, that it is not, or nothing. */
  | { readonly kind: "succeeded" | "failed" | "neutral"; readonly endpointId: string; readonly lease: Lease }
  /** It refused the request of `lease` for overload. Undefined: it did not say for how long. */
  | {
      readonly kind: "busy";
      readonly endpointId: string;
      readonly lease: Lease;
      readonly retryAfterMs: number | undefined;
    };

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
    const changed = new Set<string>();
    const ledger = new Ledger(changed);
    this.#holding = new Holding({ ...DEFAULT_HOLDING_LIMITS, ...options.holding }, options.order ?? keyOrder, changed);
    this.#random = new PeekableRandom(options.random ?? seededRandom(1));
    this.#pool = new Pool(ledger, this.#holding, new ReuseOdds(), options);
    this.#sharing = new Sharing(this.#pool, ledger, changed);
    this.#router = new Router(nameOf(policy), createPolicy(policy, policyOptions), this.#pool, ledger, this.#sharing);
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

  /** Undefined: no such endpoint, or not any more. */
  member(endpointId: string): Member | undefined {
    return this.#pool.member(endpointId);
  }

  /** Requests that are held now. */
  get heldRequests(): number {
    return this.#holding.size;
  }

  /** Bytes of their bodies, as `decide` was told. */
  get heldBytes(): number {
    return this.#holding.bytes;
  }

  /** Requests that are held now, by their priority. */
  get heldByPriority(): Readonly<Record<Priority, number>> {
    return this.#holding.byPriority;
  }

  /** How many decisions refused a request, by reason. */
  get refusals(): Readonly<Partial<Record<RefusalReason, number>>> {
    return this.#router.refusals;
  }

  /**
   * Replaces the membership; endpoints that stay keep their work and everything learned. `known` is what is known of some
   * of them: it counts before anything goes to a new one.
   */
  setEndpoints(endpoints: readonly Endpoint[], nowMs: number, known: readonly Observation[] = []): readonly Release[] {
    const before = this.#pool.members.map(({ endpoint }) => endpoint.id);
    this.#pool.setEndpoints(endpoints, nowMs);
    for (const observation of known) this.#note(observation, nowMs);
    const releases: Release[] = [];
    for (const id of before) {
      if (this.#pool.member(id) !== undefined) continue;
      releases.push(...this.#binder.reassign(id, nowMs));
      this.#holding.forget(id);
    }
    releases.push(...this.#binder.reassign(undefined, nowMs));
    for (const member of this.#pool.members) {
      releases.push(...this.#binder.reassign(member.endpoint.id, nowMs), ...this.#binder.moved(member, nowMs));
    }
    return releases;
  }

  /**
   * Chooses an endpoint and opens the lease in one step, or holds the request until one can begin on it. `tried`: ids
   * this request has already failed on. `bodyBytes`: what the caller keeps in memory for it while it is held.
   * `arrivedAtMs`: when it came first; left out: now.
   */
  decide(
    request: RequestProfile,
    nowMs: number,
    tried: readonly string[] = [],
    bodyBytes: number = 0,
    arrivedAtMs: number = nowMs,
  ): Decision {
    return this.#binder.bind(this.#holding.ticket(request, { tried, arrivedAtMs, heldAtMs: nowMs, bodyBytes }), nowMs);
  }

  /** Whether there is an endpoint that was not tried and may take the request, at once or later. */
  hasOther(request: RequestProfile, tried: readonly string[]): boolean {
    return this.#pool.members.some((member) => lastingExclusionOf(member, request, tried) === undefined);
  }

  /** What `decide` would answer, with nothing changed. */
  explain(request: RequestProfile, nowMs: number, bodyBytes: number = 0): Forecast {
    const arrival = { tried: [], arrivedAtMs: nowMs, heldAtMs: nowMs, bodyBytes };
    return this.#binder.forecast(this.#holding.ticket(request, arrival), this.#random.peek(), nowMs);
  }

  /** The client of a held request is gone: whoever waited behind it may go. Once it is released it does nothing. */
  leave(ticket: Ticket, nowMs: number): readonly Release[] {
    return this.#binder.leave(ticket, nowMs);
  }

  /** Everybody who is held is refused: what holds them is to end. */
  releaseAll(reason: RefusalReason, nowMs: number): readonly Release[] {
    return this.#binder.releaseAll(reason, nowMs);
  }

  /** The first token of the answer was seen. Later calls for the same lease do nothing. */
  firstToken(lease: Lease, nowMs: number): readonly Release[] {
    const flight = flightOf(lease);
    if (flight === undefined || lease.isRunning) return NO_RELEASES;
    flight.firstToken(nowMs);
    return this.#movedAt(lease.endpointId, nowMs);
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
    if (outcome.kind === "completed") this.#learnSizes(flight.request, outcome);
    flight.finish(outcome, nowMs);
    flight.member.breaker.ended(lease);
    this.#router.ended(flight, outcome.kind, nowMs);
    return this.#movedAt(lease.endpointId, nowMs);
  }

  /** Takes on what is given; what is left out stays. Work, endpoints and everything learned of them are kept. */
  reconfigure(change: BalancerChange, nowMs: number): readonly Release[] {
    const { policy, policyOptions = {}, holding } = change;
    // The steps that can fail come first.
    const next = policy === undefined ? undefined : createPolicy(policy, policyOptions);
    this.#pool.configure(change, nowMs);
    if (policy !== undefined && next !== undefined) this.#router.use(nameOf(policy), next);
    if (holding !== undefined) this.#holding.limits = { ...this.#holding.limits, ...holding };
    if (this.#holding.size === 0) return NO_RELEASES;
    const releases = this.#pool.members.flatMap(({ endpoint }) => this.#binder.reassign(endpoint.id, nowMs));
    return [...releases, ...this.#binder.reassign(undefined, nowMs), ...this.#binder.tick(nowMs)];
  }

  /** Something was learned about an endpoint; unknown endpoints are ignored, they may just have left. */
  observe(observation: Observation, nowMs: number): readonly Release[] {
    const changed = this.#note(observation, nowMs);
    if (changed.length > 0) return this.#changed(changed, nowMs);
    // An engine may report more slots, or a larger cache.
    return observation.kind === "signals" ? this.#movedAt(observation.endpointId, nowMs) : NO_RELEASES;
  }

  /** The members that requests may go to now that could not, or the other way. */
  #note(observation: Observation, nowMs: number): readonly Member[] {
    const member = this.#pool.member(observation.endpointId);
    if (member === undefined) return NO_MEMBERS;
    switch (observation.kind) {
      case "availability":
        return [member, ...this.#pool.setAvailability(member, observation.availability, nowMs)];
      case "signals":
        member.report(observation.signals);
        return NO_MEMBERS;
      case "models":
        this.#pool.setModels(member, observation.models);
        break;
      case "restarted":
        member.restarted(nowMs);
        break;
      case "draining":
        return [member, ...this.#pool.setDraining(member, observation.isDraining, nowMs)];
      case "succeeded":
        return this.#pool.succeeded(member, observation.lease, nowMs) ? [member] : NO_MEMBERS;
      case "failed":
        return this.#pool.failed(member, observation.lease, nowMs) ? [member] : NO_MEMBERS;
      case "neutral":
        member.breaker.dismissed(observation.lease);
        return NO_MEMBERS;
      case "busy":
        return this.#pool.refused(member, observation.lease, observation.retryAfterMs, nowMs) ? [member] : NO_MEMBERS;
    }
    return [member];
  }

  /** Moves the requests whose tokens are not seen to where their endpoint's speed puts them, and releases whom that lets go. */
  tick(nowMs: number): readonly Release[] {
    const begun = new Set<Member>();
    for (const flight of this.#router.unseen.items()) if (flight.project(nowMs)) begun.add(flight.member);
    return this.#binder.tick(nowMs, begun);
  }

  /** What this balancer tells others in front of the same endpoints. It holds what was sent since it was last asked. */
  share(nowMs: number): SharedWork {
    return this.#sharing.share(nowMs);
  }

  /** As `share`, of those endpoints alone where something changed since; undefined: nothing did, and nothing is told. */
  shareChanges(nowMs: number): SharedWork | undefined {
    return this.#sharing.shareChanges(nowMs);
  }

  /** What the balancer `from` said of its work, in place of what it said before; undefined: it is gone. */
  adopt(from: string, work: SharedWork | undefined, nowMs: number): readonly Release[] {
    this.#sharing.adopt(from, work, nowMs);
    return this.#binder.tick(nowMs);
  }

  /**
   * When `tick` is due because time alone releases a held request: a prefill whose end is not seen is believed to be
   * done, this balancer's own or what others told, an endpoint that was ejected, busy or cold takes requests again, or
   * somebody has waited too long or long enough to be more urgent. Undefined: nobody is held, or time alone does nothing to it.
   */
  nextWakeMs(nowMs: number): number | undefined {
    if (this.#holding.size === 0) return undefined;
    let wakeMs = this.#holding.nextDueMs;
    for (const { prefillDueMs } of this.#router.unseen.items()) wakeMs = Math.min(wakeMs, prefillDueMs ?? wakeMs);
    for (const member of this.#pool.members) {
      wakeMs = Math.min(wakeMs, member.returnsAtMs(nowMs));
      const { held, untoldPrefillDueMs: dueMs } = member;
      if (held.first !== undefined && dueMs !== undefined && dueMs > nowMs) wakeMs = Math.min(wakeMs, dueMs);
    }
    return wakeMs < Number.POSITIVE_INFINITY ? wakeMs : undefined;
  }

  /** Something moved at an endpoint. It may have left the pool, or be another server of the same account by now. */
  #movedAt(endpointId: string, nowMs: number): readonly Release[] {
    const member = this.#pool.member(endpointId);
    return member === undefined ? NO_RELEASES : this.#binder.moved(member, nowMs);
  }

  /** Who may go to these members has changed. */
  #changed(members: readonly Member[], nowMs: number): readonly Release[] {
    if (this.#holding.size === 0) return NO_RELEASES;
    return [
      ...members.flatMap(({ endpoint }) => this.#binder.reassign(endpoint.id, nowMs)),
      ...this.#binder.serveAny(nowMs),
      ...members.flatMap((member) => this.#binder.moved(member, nowMs)),
    ];
  }

  #learnSizes(request: RequestProfile, { promptTokens, outputTokens }: Outcome): void {
    if (promptTokens !== undefined && request.textBytes !== undefined) {
      this.promptRatios.observe(request.model, request.textBytes, promptTokens);
    }
    if (outputTokens !== undefined && request.output.meanTokens > 0) this.outputLengths.observe(request, outputTokens);
  }
}

function nameOf(policy: string | PolicyDefinition): string {
  return typeof policy === "string" ? policy : policy.name;
}

/** Undefined: the lease is closed. */
function flightOf(lease: Lease): Flight | undefined {
  return lease.holder instanceof Flight ? lease.holder : undefined;
}

const NO_RELEASES: readonly Release[] = [];
const NO_MEMBERS: readonly Member[] = [];

/** The library's door: the same class the gateway drives. */
export function createBalancer(options: BalancerOptions): Balancer {
  return new Balancer(options);
}
