import { costOf } from "./cost.ts";
import type { Decision, Forecast, RefusalReason, Refused, Release, Routed } from "./decision.ts";
import { refusalOf } from "./eligibility.ts";
import { Grounds, HeldOn } from "./grounds.ts";
import { goesBefore, type Rank } from "./hold-order.ts";
import type { Holding } from "./holding.ts";
import type { Member } from "./member.ts";
import type { LateBinding } from "./policy.ts";
import type { Pool } from "./pool.ts";
import type { Random } from "./random.ts";
import { isAtCap, type Router, type Weighed } from "./router.ts";
import type { HoldingPlace, Ticket } from "./ticket.ts";

/** How a request that may have to wait is bound. */
export interface BinderOptions {
  /** What becomes of a request when its policy has room nowhere. */
  readonly whenFull: "refuse" | "hold";
  readonly random: Random;
}

/**
 * Binds requests to endpoints late: one whose best endpoint cannot begin on it is held for that endpoint, assigned but
 * not sent, and weighed again over all endpoints when something there moves. A request never waits here while an
 * endpoint that could take it has nothing to do: it goes to the best one that has memory for it then.
 */
export class Binder {
  readonly #router: Router;
  readonly #pool: Pool;
  readonly #holding: Holding;
  readonly #options: BinderOptions;
  #tickedAtMs = Number.NEGATIVE_INFINITY;

  constructor(router: Router, pool: Pool, holding: Holding, options: BinderOptions) {
    this.#router = router;
    this.#pool = pool;
    this.#holding = holding;
    this.#options = options;
  }

  #binding(): LateBinding | undefined {
    return this.#router.policy.lateBinding;
  }

  /** The decision on a request that arrives; its ticket is new. */
  bind(ticket: Ticket, nowMs: number): Decision {
    ticket.tenant.arrived();
    const { weighed, place } = this.#plan(ticket, this.#options.random, nowMs);
    if (place === undefined) return this.#settle(ticket, weighed, nowMs);
    const { grounds } = weighed;
    if (ticket.deadlineMs <= nowMs) return this.#refuse(ticket, "queue_timeout", nowMs, grounds);
    const shed = this.#holding.makeRoomFor(ticket);
    if (shed === undefined) return this.#refuse(ticket, "queue_full", nowMs, grounds);
    this.#holding.put(ticket, place);
    // Who is behind one that was shed goes by the next event: this one has nobody yet to tell of its own release.
    return new HeldOn(grounds, ticket, this.#refuseAll(shed, "shed", nowMs));
  }

  /** What the decision would be, with nothing changed. */
  forecast(ticket: Ticket, random: Random, nowMs: number): Forecast {
    const { weighed, place } = this.#plan(ticket, random, nowMs);
    const { chosen, grounds } = weighed;
    const isRefused = place !== undefined && !this.#holding.canTake(ticket);
    return {
      chosen: isRefused ? undefined : chosen?.endpoint,
      wouldHold: place !== undefined && !isRefused,
      explanation: grounds.explanation,
    };
  }

  /** A held request is given up. If it was the first of its line, the next may be able to go. */
  leave(ticket: Ticket, nowMs: number): readonly Release[] {
    const { place } = ticket;
    if (place === undefined) return NO_RELEASES;
    const { endpointId } = place;
    const wasFirst = this.#holding.line(endpointId).first === ticket;
    this.#holding.remove(ticket);
    if (!wasFirst) return NO_RELEASES;
    const member = endpointId === undefined ? undefined : this.#pool.member(endpointId);
    if (member !== undefined) return this.moved(member, nowMs);
    return this.serveAny(nowMs);
  }

  /** Something moved at `member`: whoever it can begin on by that is released. */
  moved(member: Member, nowMs: number): readonly Release[] {
    if (this.#holding.size === 0) return NO_RELEASES;
    const releases: Release[] = [];
    this.#serve(member, releases, nowMs);
    if (member.isUsable) this.#serveFirst(this.#takenBy(member, nowMs), releases, nowMs);
    if (member.account.requests === 0) this.#occupy(member, releases, nowMs);
    return releases;
  }

  /**
   * Time passed: whoever has been held too long is refused, and backlogs drained.
   * @param begun Members where prefill is believed to be done by that.
   */
  tick(nowMs: number, begun: ReadonlySet<Member> = NO_MEMBERS): readonly Release[] {
    const sinceMs = this.#tickedAtMs;
    this.#tickedAtMs = nowMs;
    if (this.#holding.size === 0) return NO_RELEASES;
    const releases = [...this.#refuseAll(this.#holding.pass(nowMs), "queue_timeout", nowMs)];
    for (const member of this.#pool.members) {
      const { first } = member.held;
      if (begun.has(member) || member.returnsAtMs(sinceMs) <= nowMs) releases.push(...this.moved(member, nowMs));
      else if (first !== undefined && this.#canBegin(first, member, nowMs)) this.#serve(member, releases, nowMs);
      // Time makes no endpoint the last resort: that comes by events.
      if (member.account.requests === 0 && member.isFreeAt(nowMs)) this.#occupy(member, releases, nowMs);
    }
    this.#serveAll(releases, nowMs);
    return releases;
  }

  /** Weighs again whoever is held for `endpointId`, or for any: who may take requests has changed. */
  reassign(endpointId: string | undefined, nowMs: number): readonly Release[] {
    const tickets = this.#holding.line(endpointId).tickets();
    if (tickets.length === 0) return NO_RELEASES;
    const releases: Release[] = [];
    for (const ticket of tickets) this.#rebind(ticket, releases, nowMs);
    return releases;
  }

  /** As `reassign`, of those held for any, where their places stay as they are. */
  serveAny(nowMs: number): readonly Release[] {
    const releases: Release[] = [];
    this.#serveAll(releases, nowMs);
    return releases;
  }

  /** Everybody who is held is refused. */
  releaseAll(reason: RefusalReason, nowMs: number): readonly Release[] {
    const tickets = [...this.#holding.lines()].flatMap((line) => line.tickets());
    for (const ticket of tickets) this.#holding.remove(ticket);
    return this.#refuseAll(tickets, reason, nowMs);
  }

  /**
   * While `member` can begin on somebody: a guest that goes before all of its own, or the first of its own. Whoever
   * another balancer holds for it, and goes before those, is left to that one.
   */
  #serve(member: Member, releases: Release[], nowMs: number): void {
    if (!member.isUsable) return;
    for (let served = 0; served < MAX_SERVED && !isAtCap(member); served++) {
      const { first } = member.held;
      const guest = this.#guestOf(member, first, nowMs);
      if (guest !== undefined) this.#release(guest.ticket, { ...guest.weighed, chosen: member }, releases, nowMs);
      else if (first === undefined || member.held.isOthersTurn(first)) return;
      else if (this.#canBegin(first, member, nowMs)) this.#rebind(first, releases, nowMs);
      else return;
    }
  }

  /**
   * Of the first in the other lines that `member` could take the one that would be first here, before `first`, and is
   * better off here by now: whoever is held for an endpoint whose memory is full must not wait for that one while a
   * place is free elsewhere.
   */
  #guestOf(member: Member, first: Ticket | undefined, nowMs: number): Guest | undefined {
    let guest: Guest | undefined;
    let best: Rank | undefined = first;
    const isTaken = this.#takenBy(member, nowMs);
    for (const { endpoint, held } of this.#pool.members) {
      const ticket = endpoint === member.endpoint ? undefined : held.firstOf(isTaken);
      if (ticket === undefined || !this.#canBegin(ticket, member, nowMs)) continue;
      const { request, arrivedAtMs, urgency, tenant } = ticket;
      const key = this.#binding()?.holdKey(request, member, arrivedAtMs) ?? Number.POSITIVE_INFINITY;
      const rank = { urgency, tenant, key };
      if ((best !== undefined && !goesBefore(rank, best)) || member.held.isOthersTurn(rank)) continue;
      const weighed = this.#weigh(ticket, nowMs);
      if (gainOf(weighed, endpoint.id, member.endpoint.id) <= 0) continue;
      guest = { ticket, weighed };
      best = rank;
    }
    return guest;
  }

  /**
   * Of those held for any endpoint, all who find room go. Of those alike in where they may go, whoever is behind one
   * that waits on waits too.
   */
  #serveAll(releases: Release[], nowMs: number): void {
    const waiting = new Set<string>();
    const isAskedFor = (ticket: Ticket): boolean => !waiting.has(scopeOf(ticket));
    let first = this.#serveFirst(isAskedFor, releases, nowMs);
    for (; first !== undefined; first = this.#serveFirst(isAskedFor, releases, nowMs)) waiting.add(scopeOf(first));
  }

  /** Of those held for any endpoint and asked for, the first goes as long as it finds room. Returns the one that does not. */
  #serveFirst(isAskedFor: (ticket: Ticket) => boolean, releases: Release[], nowMs: number): Ticket | undefined {
    const line = this.#holding.line(undefined);
    for (let first = line.firstOf(isAskedFor); first !== undefined; first = line.firstOf(isAskedFor)) {
      const weighed = this.#weigh(first, nowMs);
      const place = this.#placeToWait(first, weighed, nowMs);
      if (place === undefined) this.#release(first, this.#fitting(first, weighed), releases, nowMs);
      else if (place.endpointId === undefined) return first;
      else this.#holding.put(first, place);
    }
    return undefined;
  }

  /** `member` has nothing to do: until it has, whoever it could take goes to its best endpoint at once. */
  #occupy(member: Member, releases: Release[], nowMs: number): void {
    if (!member.isUsable) return;
    const isTaken = this.#takenBy(member, nowMs);
    for (const ticket of this.#holding.tickets()) {
      if (member.account.requests > 0) return;
      if (!isTaken(ticket)) continue;
      const weighed = this.#weigh(ticket, nowMs);
      if (weighed.candidates.includes(member)) this.#release(ticket, this.#fitting(ticket, weighed), releases, nowMs);
    }
  }

  /** A request that arrives: weighed, and where it would wait; undefined: it would not. */
  #plan(ticket: Ticket, random: Random, nowMs: number): { weighed: Weighed; place: HoldingPlace | undefined } {
    let weighed = this.#router.weigh(ticket, random, nowMs);
    let place = this.#holding.limits.maxRequests > 0 ? this.#placeToWait(ticket, weighed, nowMs) : undefined;
    if (place !== undefined && weighed.grounds.excluded.some(({ why }) => why === "warming")) {
      // It would be the first who has to wait, and an endpoint that was spared till now may help.
      weighed = this.#router.weigh(ticket, random, nowMs, true);
      place = this.#placeToWait(ticket, weighed, nowMs);
    }
    return { weighed: place === undefined ? this.#fitting(ticket, weighed) : weighed, place };
  }

  /** A held request is sent, or held for whoever is best for it now. */
  #rebind(ticket: Ticket, releases: Release[], nowMs: number): void {
    const weighed = this.#weigh(ticket, nowMs);
    const place = this.#placeToWait(ticket, weighed, nowMs);
    if (place === undefined) this.#release(ticket, this.#fitting(ticket, weighed), releases, nowMs);
    else this.#holding.put(ticket, place);
  }

  /** Undefined: it need not wait, or has nothing to wait for. */
  #placeToWait(ticket: Ticket, weighed: Weighed, nowMs: number): HoldingPlace | undefined {
    const { chosen, candidates } = weighed;
    if (chosen === undefined) {
      const isFull = weighed.grounds.excluded.some(({ why }) => why === "no_room");
      return isFull && this.#options.whenFull === "hold" ? this.#placeForAny(ticket) : undefined;
    }
    const binding = this.#binding();
    const place =
      binding === undefined
        ? this.#placeBehindOthers(ticket, chosen, nowMs)
        : this.#placeBeforeIt(ticket, chosen, binding, nowMs);
    if (place === undefined || candidates.some(({ account }) => account.requests === 0)) return undefined;
    return place;
  }

  /** Its place among those held for `chosen`; undefined: that can begin on it, and nobody goes before it. */
  #placeBeforeIt(ticket: Ticket, chosen: Member, binding: LateBinding, nowMs: number): HoldingPlace | undefined {
    const { held } = chosen;
    const canBegin = this.#canBegin(ticket, chosen, nowMs);
    if (canBegin && held.requests === 0) return undefined;
    const key = binding.holdKey(ticket.request, chosen, ticket.arrivedAtMs);
    const { urgency } = ticket;
    if (canBegin && isFirst(ticket, key, held.first) && !held.isOthersTurn({ urgency, key })) return undefined;
    const { prefillTokens, prefillPairs } = costOf(ticket.request, chosen.cachedTokens(ticket.request));
    return { endpointId: chosen.endpoint.id, key, prefillTokens, prefillPairs };
  }

  /**
   * Whoever is held for any endpoint goes before those that come after it in the order, though there is room just now.
   * Those that could not have what this one is to get are in nobody's way.
   */
  #placeBehindOthers(ticket: Ticket, chosen: Member, nowMs: number): HoldingPlace | undefined {
    const first = this.#holding.line(undefined).firstOf(this.#takenBy(chosen, nowMs));
    if (first === undefined) return undefined;
    const place = this.#placeForAny(ticket);
    return isFirst(ticket, place.key, first) ? undefined : place;
  }

  /**
   * With the best of the endpoints that have memory for it chosen, where the best of all has none; with none, where all
   * are at their caps.
   */
  #fitting({ request }: Ticket, weighed: Weighed): Weighed {
    const binding = this.#binding();
    if (binding === undefined || weighed.chosen === undefined) return weighed;
    if (isAtCap(weighed.chosen)) return { ...weighed, chosen: undefined };
    if (binding.fits(request, weighed.chosen)) return weighed;
    const { candidates, grounds } = weighed;
    let chosen: Member = weighed.chosen;
    let leastScore = Number.POSITIVE_INFINITY;
    for (const [i, candidate] of candidates.entries()) {
      const score = grounds.considered[i]?.score ?? Number.POSITIVE_INFINITY;
      if (score >= leastScore || !binding.fits(request, candidate)) continue;
      chosen = candidate as Member;
      leastScore = score;
    }
    return { ...weighed, chosen };
  }

  #placeForAny({ request, arrivedAtMs }: Ticket): HoldingPlace {
    const key = this.#router.policy.queueKey?.(request, arrivedAtMs) ?? arrivedAtMs;
    return { endpointId: undefined, key, prefillTokens: 0, prefillPairs: 0 };
  }

  #canBegin({ request }: Ticket, member: Member, nowMs: number): boolean {
    return !isAtCap(member) && (this.#binding()?.canBegin(request, member, nowMs) ?? true);
  }

  /** Says of requests whether `member` could take them, room aside. */
  #takenBy(member: Member, nowMs: number): (ticket: Ticket) => boolean {
    return ({ request, tried }) => this.#pool.couldTake(member, request, tried, nowMs);
  }

  #weigh(ticket: Ticket, nowMs: number): Weighed {
    return this.#router.weigh(ticket, this.#options.random, nowMs);
  }

  #settle(ticket: Ticket, weighed: Weighed, nowMs: number): Routed | Refused {
    const { chosen, grounds } = weighed;
    return chosen === undefined
      ? this.#refuse(ticket, refusalOf(grounds.excluded), nowMs, grounds)
      : this.#router.route(ticket, weighed, chosen, nowMs);
  }

  #refuse({ request }: Ticket, reason: RefusalReason, nowMs: number, grounds: Grounds): Refused {
    const ahead = this.#holding.countAhead(this.#holding.order.urgencyOf(request));
    return this.#router.refuse(reason, grounds, ahead, nowMs);
  }

  /** Tickets that are held no more. */
  #refuseAll(tickets: readonly Ticket[], reason: RefusalReason, nowMs: number): readonly Release[] {
    if (tickets.length === 0) return NO_RELEASES;
    // Nobody asked the policy: what it would say now is not why.
    const grounds = new Grounds(this.#router.policyName, `held, then ${reason}`, []);
    return tickets.map((ticket) => ({ ticket, decision: this.#refuse(ticket, reason, nowMs, grounds) }));
  }

  #release(ticket: Ticket, weighed: Weighed, releases: Release[], nowMs: number): void {
    this.#holding.remove(ticket);
    releases.push({ ticket, decision: this.#settle(ticket, weighed, nowMs) });
  }
}

/** A request held for one endpoint that may go to another. */
interface Guest {
  readonly ticket: Ticket;
  readonly weighed: Weighed;
}

/** Nobody in the line whose first is `first` goes before it. */
function isFirst(ticket: Ticket, key: number, first: Ticket | undefined): boolean {
  if (first === undefined || first === ticket) return true;
  return goesBefore({ urgency: ticket.urgency, tenant: ticket.tenant, key }, first);
}

/** What of a request says which endpoints may take it. */
function scopeOf({ request: { model }, tried }: Ticket): string {
  return tried.length === 0 ? model : [model, ...tried].join("\n");
}

/** What a request held for `from` gains by going to `to`, in the policy's score; 0: it cannot go there. */
function gainOf({ grounds }: Weighed, from: string | undefined, to: string): number {
  const scoreAt = (id: string | undefined) => grounds.considered.find(({ endpoint }) => endpoint === id)?.score;
  const scoreThere = scoreAt(to);
  return scoreThere === undefined ? 0 : (scoreAt(from) ?? Number.POSITIVE_INFINITY) - scoreThere;
}

/** An endpoint that could begin on still more says so again by its next event. */
const MAX_SERVED = 16;

const NO_RELEASES: readonly Release[] = [];
const NO_MEMBERS: ReadonlySet<Member> = new Set();
