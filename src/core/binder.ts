import { costOf } from "./cost.ts";
import type { Decision, Forecast, Refused, Release, Routed } from "./decision.ts";
import type { Holding } from "./holding.ts";
import type { LateBinding } from "./policy.ts";
import type { Member, Pool } from "./pool.ts";
import type { Random } from "./random.ts";
import type { Router, Weighed } from "./router.ts";
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
  readonly #binding: LateBinding | undefined;
  readonly #options: BinderOptions;

  constructor(router: Router, pool: Pool, holding: Holding, options: BinderOptions) {
    this.#router = router;
    this.#pool = pool;
    this.#holding = holding;
    this.#binding = router.policy.lateBinding;
    this.#options = options;
  }

  /** The decision on a request that arrives; its ticket is new. */
  bind(ticket: Ticket, nowMs: number): Decision {
    const { weighed, place } = this.#plan(ticket, this.#options.random, nowMs);
    if (place === undefined) return this.#settle(ticket, weighed, nowMs);
    this.#holding.put(ticket, place);
    return { kind: "held", ticket, explanation: weighed.explanation };
  }

  /** What the decision would be, with nothing changed. */
  forecast(ticket: Ticket, random: Random, nowMs: number): Forecast {
    const { weighed, place } = this.#plan(ticket, random, nowMs);
    const { chosen, explanation } = weighed;
    return { chosen: chosen?.endpoint, wouldHold: place !== undefined, explanation };
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
    const releases: Release[] = [];
    this.#serveAny(releases, nowMs);
    return releases;
  }

  /** Something moved at `member`: whoever it can begin on by that is released. */
  moved(member: Member, nowMs: number): readonly Release[] {
    if (this.#holding.size === 0) return NO_RELEASES;
    const releases: Release[] = [];
    this.#serve(member, releases, nowMs);
    this.#serveAny(releases, nowMs);
    if (member.account.requests === 0) this.#occupy(member, releases, nowMs);
    return releases;
  }

  /** Time passed: backlogs drained, and whoever has been held too long is sent all the same. */
  tick(nowMs: number): readonly Release[] {
    if (this.#holding.size === 0) return NO_RELEASES;
    const releases: Release[] = [];
    for (const member of this.#pool.members) {
      if (member.held.first !== undefined) releases.push(...this.moved(member, nowMs));
      else if (member.account.requests === 0) this.#occupy(member, releases, nowMs);
    }
    this.#serveAny(releases, nowMs);
    for (let { oldest } = this.#holding; oldest !== undefined; oldest = this.#holding.oldest) {
      if (nowMs < this.#overdueAtMs(oldest)) break;
      this.#release(oldest, this.#fitting(oldest, this.#weigh(oldest, nowMs)), releases, nowMs);
    }
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

  /** When whoever has been held longest is sent all the same; undefined: nobody is held. */
  get overdueAtMs(): number | undefined {
    const { oldest } = this.#holding;
    return oldest && this.#overdueAtMs(oldest);
  }

  /** While `member` can begin on somebody: a guest that goes before all of its own, or the first of its own. */
  #serve(member: Member, releases: Release[], nowMs: number): void {
    for (let served = 0; served < MAX_SERVED; served++) {
      const { first } = member.held;
      const guest = this.#guestOf(member, first?.place?.key ?? Number.POSITIVE_INFINITY, nowMs);
      if (guest !== undefined) this.#release(guest.ticket, { ...guest.weighed, chosen: member }, releases, nowMs);
      else if (first !== undefined && this.#canBegin(first, member, nowMs)) this.#rebind(first, releases, nowMs);
      else return;
    }
  }

  /**
   * Of the first in the other lines the one with the smallest key here, below `key`, that is better off here by now:
   * whoever is held for an endpoint whose memory is full must not wait for that one while a place is free elsewhere.
   */
  #guestOf(member: Member, key: number, nowMs: number): Guest | undefined {
    let guest: Guest | undefined;
    let guestKey = key;
    for (const { endpoint, held } of this.#pool.members) {
      const ticket = held.first;
      if (ticket === undefined || endpoint === member.endpoint || !this.#canBegin(ticket, member, nowMs)) continue;
      const keyHere = this.#binding?.holdKey(ticket.request, member, ticket.heldAtMs) ?? Number.POSITIVE_INFINITY;
      if (keyHere >= guestKey) continue;
      const weighed = this.#weigh(ticket, nowMs);
      if (gainOf(weighed, endpoint.id, member.endpoint.id) <= 0) continue;
      guest = { ticket, weighed };
      guestKey = keyHere;
    }
    return guest;
  }

  /** Those held for any endpoint go as long as the first of them finds room. */
  #serveAny(releases: Release[], nowMs: number): void {
    const line = this.#holding.line(undefined);
    for (let { first } = line; first !== undefined; first = line.first) {
      const weighed = this.#weigh(first, nowMs);
      if (this.#placeToWait(first, weighed, nowMs) !== undefined) return;
      this.#release(first, weighed, releases, nowMs);
    }
  }

  /** `member` has nothing to do: until it has, whoever it could take goes to its best endpoint at once. */
  #occupy(member: Member, releases: Release[], nowMs: number): void {
    for (const line of this.#holding.lines()) {
      for (const ticket of line.tickets()) {
        if (member.account.requests > 0) return;
        if (!this.#pool.couldTake(member, ticket.request, ticket.tried)) continue;
        const weighed = this.#weigh(ticket, nowMs);
        if (weighed.candidates.includes(member)) this.#release(ticket, this.#fitting(ticket, weighed), releases, nowMs);
      }
    }
  }

  /** A request that arrives: weighed, and where it would wait; undefined: it would not. */
  #plan(ticket: Ticket, random: Random, nowMs: number): { weighed: Weighed; place: HoldingPlace | undefined } {
    const weighed = this.#router.weigh(ticket, random, nowMs);
    const place = this.#holding.hasRoomFor(ticket.bodyBytes) ? this.#placeToWait(ticket, weighed, nowMs) : undefined;
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
      const isFull = weighed.explanation.excluded.some(({ why }) => why === "no_room");
      return isFull && this.#options.whenFull === "hold" ? this.#placeForAny(ticket) : undefined;
    }
    if (candidates.some(({ account }) => account.requests === 0)) return undefined;
    if (this.#binding === undefined) return this.#placeBehindOthers(ticket);
    const key = this.#binding.holdKey(ticket.request, chosen, ticket.heldAtMs);
    if (this.#canBegin(ticket, chosen, nowMs) && isFirst(ticket, key, chosen)) return undefined;
    const { prefillTokens, prefillPairs } = costOf(ticket.request, chosen.cachedTokens(ticket.request));
    return { endpointId: chosen.endpoint.id, key, prefillTokens, prefillPairs };
  }

  /** Whoever is held for any endpoint goes before those with a larger key, though there is room just now. */
  #placeBehindOthers(ticket: Ticket): HoldingPlace | undefined {
    const { first } = this.#holding.line(undefined);
    if (first === undefined || first === ticket) return undefined;
    const place = this.#placeForAny(ticket);
    return isBefore(first, place.key) ? place : undefined;
  }

  /** With the best of the endpoints that have memory for it chosen, where the best of all has none. */
  #fitting({ request }: Ticket, weighed: Weighed): Weighed {
    const binding = this.#binding;
    if (binding === undefined || weighed.chosen === undefined || binding.fits(request, weighed.chosen)) return weighed;
    const { candidates, explanation } = weighed;
    let chosen: Member = weighed.chosen;
    let leastScore = Number.POSITIVE_INFINITY;
    for (const [i, candidate] of candidates.entries()) {
      const score = explanation.considered[i]?.score ?? Number.POSITIVE_INFINITY;
      if (score >= leastScore || !binding.fits(request, candidate)) continue;
      chosen = candidate as Member;
      leastScore = score;
    }
    return { ...weighed, chosen };
  }

  /** One sum wherever it is asked for: of fractions of a ms, a difference may say otherwise. */
  #overdueAtMs({ heldAtMs }: Ticket): number {
    return heldAtMs + this.#holding.limits.maxWaitMs;
  }

  #placeForAny({ request, heldAtMs }: Ticket): HoldingPlace {
    const key = this.#router.policy.queueKey?.(request, heldAtMs) ?? heldAtMs;
    return { endpointId: undefined, key, prefillTokens: 0, prefillPairs: 0 };
  }

  #canBegin({ request }: Ticket, member: Member, nowMs: number): boolean {
    return this.#binding === undefined || this.#binding.canBegin(request, member, nowMs);
  }

  #weigh(ticket: Ticket, nowMs: number): Weighed {
    return this.#router.weigh(ticket, this.#options.random, nowMs);
  }

  #settle({ request }: Ticket, weighed: Weighed, nowMs: number): Routed | Refused {
    return weighed.chosen === undefined
      ? this.#router.refuse(weighed)
      : this.#router.route(request, weighed, weighed.chosen, nowMs);
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

/** Nobody held for `member` goes before it. */
function isFirst(ticket: Ticket, key: number, { held: { first } }: Member): boolean {
  return first === undefined || first === ticket || !isBefore(first, key);
}

function isBefore({ place }: Ticket, key: number): boolean {
  return place !== undefined && place.key <= key;
}

/** What a request held for `from` gains by going to `to`, in the policy's score; 0: it cannot go there. */
function gainOf({ explanation }: Weighed, from: string | undefined, to: string): number {
  const scoreAt = (id: string | undefined) => explanation.considered.find(({ endpoint }) => endpoint === id)?.score;
  const scoreThere = scoreAt(to);
  return scoreThere === undefined ? 0 : (scoreAt(from) ?? Number.POSITIVE_INFINITY) - scoreThere;
}

/** An endpoint that could begin on still more says so again by its next event. */
const MAX_SERVED = 16;

const NO_RELEASES: readonly Release[] = [];
