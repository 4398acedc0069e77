import type { HeldPrefill, HeldWork } from "./policy.ts";
import type { HeldShare } from "./shared-work.ts";
import type { HoldingPlace, Ticket } from "./ticket.ts";

/** Tickets held for one endpoint, or for whichever has room, in the order of their keys. */
export class HoldingLine implements HeldWork {
  readonly #tickets: Ticket[] = [];
  /** Work of the first n + 1 tickets; up to date for the first `#summed`. */
  readonly #tokens: number[] = [];
  readonly #pairs: number[] = [];
  #summed = 0;
  /** What other balancers hold for the endpoint, each as it said last. */
  readonly #others = new Map<string, HeldShare>();

  get requests(): number {
    return this.#tickets.length + this.#othersSum("requests");
  }

  get first(): Ticket | undefined {
    return this.#tickets[0];
  }

  aheadOf(key: number): HeldPrefill {
    if (this.#tickets.length === 0 && this.#others.size === 0) return NOTHING;
    const ahead = this.#placeOf(key);
    this.#sumUp();
    // Of the keys of those that others hold nothing is known: half of them go before it.
    return {
      prefillTokens: (this.#tokens[ahead - 1] ?? 0) + this.#othersSum("prefillTokens") / 2,
      prefillPairs: (this.#pairs[ahead - 1] ?? 0) + this.#othersSum("prefillPairs") / 2,
    };
  }

  countBehind(key: number): number {
    return this.#tickets.length - this.#placeAfter(key) + this.#othersSum("requests") / 2;
  }

  /** What the balancer `from` holds for the endpoint, in place of what it said before; undefined: nothing any more. */
  adopt(from: string, share: HeldShare | undefined): void {
    if (share === undefined || share.requests === 0) this.#others.delete(from);
    else this.#others.set(from, share);
  }

  /** What is held here. */
  own(): HeldShare {
    const requests = this.#tickets.length;
    this.#sumUp();
    const prefillTokens = this.#tokens[requests - 1] ?? 0;
    return { requests, prefillTokens, prefillPairs: this.#pairs[requests - 1] ?? 0 };
  }

  /** Behind those with the same key. */
  add(ticket: Ticket, key: number): void {
    const place = this.#placeAfter(key);
    this.#tickets.splice(place, 0, ticket);
    this.#summed = Math.min(this.#summed, place);
  }

  remove(ticket: Ticket, key: number): void {
    const place = this.#tickets.indexOf(ticket, this.#placeOf(key));
    this.#tickets.splice(place, 1);
    this.#summed = Math.min(this.#summed, place);
  }

  tickets(): readonly Ticket[] {
    return [...this.#tickets];
  }

  /** Tickets with a smaller key. */
  #placeOf(key: number): number {
    return this.#search((other) => other < key);
  }

  /** Tickets with this key or a smaller one. */
  #placeAfter(key: number): number {
    return this.#search((other) => other <= key);
  }

  #search(isAhead: (key: number) => boolean): number {
    let low = 0;
    let high = this.#tickets.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAhead(placeOf(this.#tickets[middle] as Ticket).key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #othersSum(sum: keyof HeldShare): number {
    let total = 0;
    if (this.#others.size > 0) for (const share of this.#others.values()) total += share[sum];
    return total;
  }

  #sumUp(): void {
    for (let at = this.#summed; at < this.#tickets.length; at++) {
      const { prefillTokens, prefillPairs } = placeOf(this.#tickets[at] as Ticket);
      this.#tokens[at] = (at === 0 ? 0 : (this.#tokens[at - 1] as number)) + prefillTokens;
      this.#pairs[at] = (at === 0 ? 0 : (this.#pairs[at - 1] as number)) + prefillPairs;
    }
    this.#summed = this.#tickets.length;
  }
}

const NOTHING: HeldPrefill = { prefillTokens: 0, prefillPairs: 0 };

function placeOf({ place }: Ticket): HoldingPlace {
  if (place === undefined) throw new Error("this ticket is not held");
  return place;
}

/** How much is held at most, and for how long. */
export interface HoldingLimits {
  readonly maxRequests: number;
  /** Of their bodies together. */
  readonly maxBytes: number;
  /** After that a request is sent though its endpoint has no room. */
  readonly maxWaitMs: number;
}

/**
 * Bytes: 4096 prompts of 16,000 tokens, or four of the largest bodies. Time: long enough for any order by size to come
 * to an end; a request that waited longer has been forgotten by its client.
 */
export const DEFAULT_HOLDING_LIMITS: HoldingLimits = {
  maxRequests: 4096,
  maxBytes: 256 * 1024 * 1024,
  maxWaitMs: 180_000,
};

/**
 * The one place where requests wait before they are sent: a line for each endpoint that somebody is held for, and one
 * of those that are held for any. Bounded in number, bytes and time.
 */
export class Holding {
  readonly limits: HoldingLimits;
  readonly #lines = new Map<string | undefined, HoldingLine>();
  /** Tickets in the order in which they came; those that left since are skipped. */
  #arrivals: Ticket[] = [];
  /** So many at the head have left. */
  #gone = 0;
  #size = 0;
  #bytes = 0;

  constructor(limits: HoldingLimits) {
    this.limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether one more with a body of this size may be held. */
  hasRoomFor(bodyBytes: number): boolean {
    return this.#size < this.limits.maxRequests && this.#bytes + bodyBytes <= this.limits.maxBytes;
  }

  /** The line of an endpoint that is in the pool, or of any; the same one as long as the endpoint stays. */
  line(endpointId: string | undefined): HoldingLine {
    let line = this.#lines.get(endpointId);
    if (line === undefined) {
      line = new HoldingLine();
      this.#lines.set(endpointId, line);
    }
    return line;
  }

  lines(): Iterable<HoldingLine> {
    return this.#lines.values();
  }

  /** The endpoint left: its line goes, once it is empty. */
  forget(endpointId: string): void {
    this.#lines.delete(endpointId);
  }

  /** Holds a new ticket, or moves one. */
  put(ticket: Ticket, place: HoldingPlace): void {
    if (!this.#take(ticket)) this.#arrive(ticket);
    ticket.place = place;
    this.line(place.endpointId).add(ticket, place.key);
    this.#size++;
    this.#bytes += ticket.bodyBytes;
  }

  /** False: it was not held. */
  remove(ticket: Ticket): boolean {
    const wasHeld = this.#take(ticket);
    // The last one takes along what is left of those before it, and of what they hold.
    if (this.#size === 0) this.#forgetArrivals();
    return wasHeld;
  }

  #take(ticket: Ticket): boolean {
    const { place } = ticket;
    if (place === undefined) return false;
    this.line(place.endpointId).remove(ticket, place.key);
    ticket.place = undefined;
    this.#size--;
    this.#bytes -= ticket.bodyBytes;
    return true;
  }

  /** The ticket that has been held longest. */
  get oldest(): Ticket | undefined {
    while (this.#gone < this.#arrivals.length && this.#arrivals[this.#gone]?.place === undefined) this.#gone++;
    return this.#arrivals[this.#gone];
  }

  #forgetArrivals(): void {
    if (this.#arrivals.length > 0) this.#arrivals = [];
    this.#gone = 0;
  }

  /** Those that left are dropped once they are most of the list. */
  #arrive(ticket: Ticket): void {
    if (this.#arrivals.length > 2 * this.#size + SPARE) {
      this.#arrivals = this.#arrivals.filter(({ place }) => place !== undefined);
      this.#gone = 0;
    }
    this.#arrivals.push(ticket);
  }
}

const SPARE = 64;
