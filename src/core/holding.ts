import { DueHeap } from "./due-heap.ts";
import { type HoldOrder, keyOrder } from "./hold-order.ts";
import { HoldingLine, inTurn } from "./holding-line.ts";
import type { Priority, RequestProfile } from "./request.ts";
import { worstOf } from "./shedding.ts";
import { type Arrival, type HoldingPlace, Ticket } from "./ticket.ts";

/** How much is held at most, and for how long. */
export interface HoldingLimits {
  /** 0: nobody is held. */
  readonly maxRequests: number;
  /** Of their bodies together. */
  readonly maxBytes: number;
  /** From a request's arrival: after that it is refused. */
  readonly maxWaitMs: number;
  /** Each such span from its arrival makes a held request more urgent, as far as the order knows urgencies. */
  readonly promoteAfterMs: number;
}

/**
 * Bytes: 4096 prompts of 16,000 tokens, or four of the largest bodies. Time: long enough for any order by size to come
 * to an end; a request that waited longer has been forgotten by its client. Promotion: the least urgent are level with
 * the most urgent after 20 s, which is before clients of the shortest patience (30 s) give up.
 */
export const DEFAULT_HOLDING_LIMITS: HoldingLimits = {
  maxRequests: 4096,
  maxBytes: 256 * 1024 * 1024,
  maxWaitMs: 180_000,
  promoteAfterMs: 10_000,
};

/**
 * The one place where requests wait before they are sent: a line for each endpoint that somebody is held for, and one
 * of those that are held for any. Bounded in number, bytes and time.
 */
export class Holding {
  limits: HoldingLimits;
  readonly order: HoldOrder;
  readonly #lines = new Map<string | undefined, HoldingLine>();
  readonly #due = new DueHeap();
  readonly #changed: Set<string>;
  readonly #byPriority: Record<Priority, number> = { low: 0, normal: 0, high: 0 };
  #size = 0;
  #bytes = 0;
  #tickets = 0;

  /** @param changed Takes the ids of endpoints for which more or fewer are held; left out: nobody asks. */
  constructor(limits: HoldingLimits, order: HoldOrder = keyOrder, changed: Set<string> = new Set()) {
    this.limits = limits;
    this.order = order;
    this.#changed = changed;
  }

  get size(): number {
    return this.#size;
  }

  /** Of the bodies of those that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many are held, by what they came with. */
  get byPriority(): Readonly<Record<Priority, number>> {
    return this.#byPriority;
  }

  /** When time does something to a held request next; infinity: never. */
  get nextDueMs(): number {
    return this.#due.first?.dueMs ?? Number.POSITIVE_INFINITY;
  }

  /** A ticket for a request that came; it is not held yet. */
  ticket(request: RequestProfile, arrival: Arrival): Ticket {
    const { maxWaitMs, promoteAfterMs } = this.limits;
    const { arrivedAtMs, heldAtMs } = arrival;
    const ticket = new Ticket(this.#tickets++, request, arrival, {
      tenant: this.order.tenantOf(request),
      urgency: this.order.urgencyOf(request),
      promotedAtMs: arrivedAtMs + promoteAfterMs,
      deadlineMs: arrivedAtMs + Math.min(maxWaitMs, request.patienceMs ?? Number.POSITIVE_INFINITY),
    });
    this.#promote(ticket, heldAtMs);
    return ticket;
  }

  /** Whether one more with a body of this size may be held. */
  hasRoomFor(bodyBytes: number): boolean {
    return this.#size < this.limits.maxRequests && this.#bytes + bodyBytes <= this.limits.maxBytes;
  }

  /** Whether the newcomer may be held, though others may have to go for it. */
  canTake(newcomer: Ticket): boolean {
    if (newcomer.bodyBytes > this.limits.maxBytes) return false;
    return this.hasRoomFor(newcomer.bodyBytes) || worstOf(newcomer, this.#lines.values()) !== undefined;
  }

  /** Takes out whoever has to go so that the newcomer may be held; undefined: that would not do, and nobody goes. */
  makeRoomFor(newcomer: Ticket): readonly Ticket[] | undefined {
    if (newcomer.bodyBytes > this.limits.maxBytes) return undefined;
    const shed: { readonly ticket: Ticket; readonly place: HoldingPlace }[] = [];
    while (!this.hasRoomFor(newcomer.bodyBytes)) {
      const ticket = worstOf(newcomer, this.#lines.values());
      if (ticket === undefined) {
        for (const { ticket, place } of shed) this.put(ticket, place);
        return undefined;
      }
      shed.push({ ticket, place: ticket.heldPlace });
      this.remove(ticket);
    }
    return shed.map(({ ticket }) => ticket);
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

  /** All who are held, the most urgent first; of one urgency line by line, those of whom got least first. */
  tickets(): readonly Ticket[] {
    return inTurn([...this.#lines.values()].flatMap((line) => line.classes));
  }

  /** How many go before a newcomer of this urgency, taken together. */
  countAhead(urgency: number): number {
    let count = 0;
    for (const { classes } of this.#lines.values()) {
      for (const each of classes) if (each.urgency >= urgency) count += each.all.size;
    }
    return count;
  }

  /** The endpoint left: its line goes, once it is empty. */
  forget(endpointId: string): void {
    this.#lines.delete(endpointId);
    this.#changed.delete(endpointId);
  }

  /** Holds a new ticket, or moves one. */
  put(ticket: Ticket, place: HoldingPlace): void {
    const { place: before } = ticket;
    if (before === undefined) this.#count(ticket);
    else this.#lineToChange(before.endpointId).remove(ticket);
    ticket.place = place;
    this.#lineToChange(place.endpointId).add(ticket);
  }

  /** False: it was not held. */
  remove(ticket: Ticket): boolean {
    const { place } = ticket;
    if (place === undefined) return false;
    this.#lineToChange(place.endpointId).remove(ticket);
    ticket.place = undefined;
    this.#due.remove(ticket);
    this.#size--;
    this.#bytes -= ticket.bodyBytes;
    this.#byPriority[ticket.request.priority]--;
    ticket.tenant.left(ticket.request);
    return true;
  }

  /** Makes those more urgent that waited long enough, and takes out those that waited too long: first come, first out. */
  pass(nowMs: number): readonly Ticket[] {
    const overdue: Ticket[] = [];
    for (let { first } = this.#due; first !== undefined && first.dueMs <= nowMs; first = this.#due.first) {
      if (first.deadlineMs <= nowMs) {
        this.remove(first);
        overdue.push(first);
      } else this.#promoteHeld(first, nowMs);
    }
    return overdue;
  }

  #lineToChange(endpointId: string | undefined): HoldingLine {
    if (endpointId !== undefined) this.#changed.add(endpointId);
    return this.line(endpointId);
  }

  #count(ticket: Ticket): void {
    this.#due.add(ticket);
    this.#size++;
    this.#bytes += ticket.bodyBytes;
    this.#byPriority[ticket.request.priority]++;
    ticket.tenant.held(ticket.request);
  }

  #promoteHeld(ticket: Ticket, nowMs: number): void {
    const line = this.line(ticket.heldPlace.endpointId);
    this.#due.remove(ticket);
    line.remove(ticket);
    this.#promote(ticket, nowMs);
    line.add(ticket);
    this.#due.add(ticket);
  }

  #promote(ticket: Ticket, nowMs: number): void {
    const { topUrgency } = this.order;
    while (ticket.urgency < topUrgency && ticket.promotedAtMs <= nowMs) {
      ticket.urgency++;
      ticket.promotedAtMs += this.limits.promoteAfterMs;
    }
    if (ticket.urgency >= topUrgency) ticket.promotedAtMs = Number.POSITIVE_INFINITY;
  }
}
