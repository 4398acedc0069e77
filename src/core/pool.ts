import { type EjectionOptions, ejectionOptions } from "./breaker.ts";
import { Ejections } from "./ejections.ts";
import { type Eligibility, exclusionOf, lastResort, standingOf } from "./eligibility.ts";
import type { Endpoint } from "./endpoint.ts";
import { FirstBlocks } from "./first-blocks.ts";
import type { Availability } from "./health.ts";
import type { Holding } from "./holding.ts";
import type { Lease, Ledger } from "./ledger.ts";
import { Member, type PoolKnowledge } from "./member.ts";
import type { Policy } from "./policy.ts";
import type { RequestProfile } from "./request.ts";
import type { ReuseOdds } from "./reuse-odds.ts";
import { rampOf } from "./slow-start.ts";
import { SpeedPool } from "./speed-pool.ts";

/** How a pool treats endpoints that fail, and those that are new. */
export interface PoolOptions {
  /** What is left out is that of `DEFAULT_EJECTION_OPTIONS`. */
  readonly ejection?: Partial<EjectionOptions> | undefined;
  /** How long an endpoint that is new or was out takes to its full share; 0 or undefined: it has it at once. */
  readonly slowStartMs?: number | undefined;
}

/** Ordered membership. Endpoints that stay keep everything learned about them. */
export class Pool {
  readonly #ledger: Ledger;
  readonly #holding: Holding;
  #shared: PoolKnowledge;
  readonly #ejections: Ejections;
  #members: ReadonlyMap<string, Member> = new Map();
  #ordered: readonly Member[] = [];
  /** Those that left while something ran there. */
  readonly #leaving = new Map<string, Member>();
  /** By model: who may take its requests. Kept while only an event can change it: each that does empties this. */
  readonly #standings = new Map<string, Eligibility>();
  /** From when on nobody is held to a smaller share. */
  #warmAtMs = Number.NEGATIVE_INFINITY;
  /** Some have a cap of their own. */
  #hasCaps = false;
  /** Who could take the request that was asked for last. */
  #lastAble: Member | undefined;

  constructor(ledger: Ledger, holding: Holding, reuse: ReuseOdds, options: PoolOptions = {}) {
    this.#ledger = ledger;
    this.#holding = holding;
    const ejection = ejectionOptions(options.ejection);
    const firstBlocks = new FirstBlocks();
    this.#shared = { speeds: new SpeedPool(), reuse, firstBlocks, ejection, slowStartMs: options.slowStartMs };
    this.#ejections = new Ejections(ejection.maxRatio);
  }

  get members(): readonly Member[] {
    return this.#ordered;
  }

  /** Whether any endpoint has a cap on its requests in flight. */
  get hasCaps(): boolean {
    return this.#hasCaps;
  }

  /** Undefined: no such endpoint, or not any more. */
  member(endpointId: string): Member | undefined {
    return this.#members.get(endpointId);
  }

  /**
   * Makes the pool consist of `endpoints`, in this order. An id that now stands for another URL is
   * another server: nothing learned of the old one is kept but its work in flight. One that left and comes back while
   * something still runs there is the same as before.
   * @param nowMs From when on new ones are warmed up; left out: they are warm, there was no pool before them.
   * @throws RangeError when two of them have the same id, or a number is not one that can be meant.
   */
  setEndpoints(endpoints: readonly Endpoint[], nowMs: number = Number.NEGATIVE_INFINITY): void {
    checkIds(endpoints);
    for (const endpoint of endpoints) checkNumbers(endpoint);
    for (const [id, { account }] of this.#leaving) if (account.requests === 0) this.#leaving.delete(id);
    const members = new Map<string, Member>();
    for (const endpoint of endpoints)
      members.set(endpoint.id, this.#keep(endpoint, nowMs) ?? this.#add(endpoint, nowMs));
    for (const [id, member] of this.#members) {
      if (members.get(id) !== member) member.leave();
      if (members.has(id)) continue;
      this.#ledger.forget(id);
      if (member.account.requests > 0) this.#leaving.set(id, member);
    }
    this.#members = members;
    this.#ordered = [...members.values()];
    this.#hasCaps = endpoints.some(({ maxRequests }) => maxRequests !== undefined);
    this.#lastAble = undefined;
    this.#review(nowMs);
  }

  /**
   * Other rules from now on; what is left out stays. Nobody who is out comes back by it, unless too many are.
   * @throws RangeError when a number is not one that can be meant; nothing has changed then.
   */
  configure(options: PoolOptions, nowMs: number): void {
    const ejection = ejectionOptions(options.ejection, this.#shared.ejection);
    const slowStartMs = options.slowStartMs ?? this.#shared.slowStartMs;
    this.#shared = { ...this.#shared, ejection, slowStartMs };
    for (const member of this.#ordered) member.configure(this.#shared, nowMs);
    this.#ejections.configure(ejection.maxRatio);
    this.#review(nowMs);
  }

  /** A member was found in another state. Returns those that are not ejected any more, since too many were. */
  setAvailability(member: Member, availability: Availability, nowMs: number): readonly Member[] {
    member.becomes(availability, nowMs);
    return this.#review(nowMs);
  }

  /** As `setAvailability`. */
  setDraining(member: Member, isDraining: boolean, nowMs: number): readonly Member[] {
    member.isDraining = isDraining;
    return this.#review(nowMs);
  }

  /** A member serves these models; undefined: any. */
  setModels(member: Member, models: ReadonlySet<string> | undefined): void {
    member.models = models;
    this.#changed();
  }

  /** A member answered the request of `lease` well. True: it may take requests again by that. */
  succeeded(member: Member, lease: Lease, nowMs: number): boolean {
    return this.#changedIf(member.succeeded(lease, nowMs));
  }

  /** A member failed the request of `lease`. True: it is ejected by that. */
  failed(member: Member, lease: Lease, nowMs: number): boolean {
    return this.#changedIf(this.#ejections.failed(member, lease, this.#ordered, nowMs));
  }

  /** A member refused the request of `lease` for overload: see `Member.refused`. */
  refused(member: Member, lease: Lease, retryAfterMs: number | undefined, nowMs: number): boolean {
    return this.#changedIf(member.refused(lease, retryAfterMs, nowMs));
  }

  /**
   * Every member is either in `members` or excluded, and what is believed of its speed is up to date.
   * @param isWaiting Somebody has to wait: where requests do, a cold endpoint that has nothing to do helps, one request
   * at a time.
   */
  eligible(
    request: RequestProfile,
    tried: readonly string[],
    policy: Pick<Policy, "hasRoom">,
    nowMs: number,
    isWaiting: boolean = this.#holding.size > 0,
  ): Eligibility {
    this.#shared.speeds.settle();
    const standing = this.#standing(request, tried, nowMs);
    const eligible = withRoom(standing, request, policy);
    const ramp = nowMs < this.#warmAtMs ? rampOf(eligible.members, nowMs) : undefined;
    if (ramp === undefined) return eligible;
    const members: Member[] = [];
    const excluded = [...eligible.excluded];
    for (const member of eligible.members) {
      const { slowStart, account } = member;
      const isHelping = isWaiting && account.requests === 0;
      if (isHelping || slowStart.hasCredit || slowStart.warmthAt(nowMs) >= ramp.warmth) members.push(member);
      else excluded.push({ endpoint: member.endpoint.id, why: "warming" });
    }
    return { members, full: eligible.full, excluded, ramp };
  }

  /** Whether `member` may take the request, room aside: what is asked of many that are held, before anything is priced. */
  couldTake(member: Member, request: RequestProfile, tried: readonly string[], nowMs: number): boolean {
    const why = exclusionOf(member, request, tried, nowMs);
    if (why !== "busy" && why !== "ejected") return why === undefined;
    return !this.#isAnyAble(request, tried, nowMs) && lastResort(this.#ordered, request, tried, nowMs).includes(member);
  }

  /** Who could take one of those that are held can mostly take the next one as well. */
  #isAnyAble(request: RequestProfile, tried: readonly string[], nowMs: number): boolean {
    const last = this.#lastAble;
    if (last !== undefined && exclusionOf(last, request, tried, nowMs) === undefined) return true;
    this.#lastAble = this.#ordered.find((member) => exclusionOf(member, request, tried, nowMs) === undefined);
    return this.#lastAble !== undefined;
  }

  /** Who may take the request, room and warmth aside. */
  #standing(request: RequestProfile, tried: readonly string[], nowMs: number): Eligibility {
    const kept = tried.length === 0 ? this.#standings.get(request.model) : undefined;
    if (kept !== undefined) return kept;
    const standing = standingOf(this.#ordered, request, tried, nowMs);
    if (tried.length === 0 && this.#ordered.every((member) => member.isSettledAt(nowMs))) {
      if (this.#standings.size === MAX_STANDINGS) this.#standings.clear();
      this.#standings.set(request.model, standing);
    }
    return standing;
  }

  /** Who is usable has changed. Returns those that are not ejected any more, since too many were. */
  #review(nowMs: number): readonly Member[] {
    const back = this.#ejections.review(this.#ordered, nowMs);
    this.#changed();
    return back;
  }

  #changedIf(isChanged: boolean): boolean {
    if (isChanged) this.#changed();
    return isChanged;
  }

  /** Who may take requests is another by now. */
  #changed(): void {
    this.#standings.clear();
    this.#warmAtMs = Number.NEGATIVE_INFINITY;
    for (const { slowStart } of this.#ordered) this.#warmAtMs = Math.max(this.#warmAtMs, slowStart.warmAtMs);
  }

  #keep(endpoint: Endpoint, nowMs: number): Member | undefined {
    const kept = this.#members.get(endpoint.id) ?? this.#revive(endpoint, nowMs);
    if (kept?.endpoint.url !== endpoint.url) return undefined;
    kept.reconfigure(endpoint);
    return kept;
  }

  /**
   * One that left and is not done yet comes back as what it was, with its work and what was learned of it; not with what
   * was in its cache, since nobody saw what became of that.
   */
  #revive({ id, url }: Endpoint, nowMs: number): Member | undefined {
    const member = this.#leaving.get(id);
    this.#leaving.delete(id);
    if (member?.endpoint.url !== url) return undefined;
    // Its account stays with the ledger by being asked for.
    this.#ledger.account(id);
    member.held = this.#holding.line(id);
    member.isDraining = false;
    member.configure(this.#shared, nowMs);
    member.rejoin();
    return member;
  }

  #add(endpoint: Endpoint, nowMs: number): Member {
    const { id } = endpoint;
    const added = new Member(endpoint, this.#ledger.account(id), this.#shared, this.#holding.line(id));
    added.slowStart.begin(nowMs);
    return added;
  }
}

/** Parts those on which the policy has room from the others, which are excluded. */
function withRoom(standing: Eligibility, request: RequestProfile, policy: Pick<Policy, "hasRoom">): Eligibility {
  if (policy.hasRoom === undefined) return standing;
  const members: Member[] = [];
  const full: Member[] = [];
  const excluded = [...standing.excluded];
  for (const member of standing.members) {
    if (policy.hasRoom(request, member, standing.members)) {
      members.push(member);
    } else {
      full.push(member);
      excluded.push({ endpoint: member.endpoint.id, why: "no_room" });
    }
  }
  return { members, full, excluded, ramp: undefined };
}

/** More models than a pool has; where endpoints accept any, clients may name any. */
const MAX_STANDINGS = 64;

function checkIds(endpoints: readonly Endpoint[]): void {
  const seen = new Set<string>();
  for (const { id } of endpoints) {
    if (seen.has(id)) throw new RangeError(`two endpoints have the id "${id}"`);
    seen.add(id);
  }
}

/** A configuration file was checked already; a caller of the library may have computed these. */
function checkNumbers({ id, weight, tokensPerSecond, kvCapacityTokens, maxRequests }: Endpoint): void {
  if (!Number.isFinite(weight) || weight < 0) {
    throw new RangeError(`endpoint "${id}": weight must be a finite number of at least 0, not ${weight}`);
  }
  for (const [name, value] of Object.entries({ tokensPerSecond, kvCapacityTokens, maxRequests })) {
    if (value === undefined || (Number.isFinite(value) && value > 0)) continue;
    throw new RangeError(`endpoint "${id}": ${name} must be a finite number above 0 or undefined, not ${value}`);
  }
}
