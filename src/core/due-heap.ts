import type { Ticket } from "./ticket.ts";

/**
 * Held tickets by when time does something to them, the earliest at hand. A ticket knows its place, so that adding,
 * moving and removing one costs the logarithm of the size.
 */
export class DueHeap {
  readonly #tickets: Ticket[] = [];

  /** Undefined: time does nothing to anybody. */
  get first(): Ticket | undefined {
    return this.#tickets[0];
  }

  /** One that time does nothing to is left out. */
  add(ticket: Ticket): void {
    if (ticket.dueMs < Number.POSITIVE_INFINITY) this.#rise(this.#tickets.length, ticket);
  }

  remove(ticket: Ticket): void {
    const { duePlace } = ticket;
    if (duePlace < 0) return;
    ticket.duePlace = -1;
    const last = this.#tickets.pop() as Ticket;
    if (last !== ticket) this.#rise(this.#sink(duePlace, last), last);
  }

  /** Moves the hole at `place` towards the root until `ticket` fits, and puts it there. */
  #rise(place: number, ticket: Ticket): void {
    let hole = place;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (!isSooner(ticket, this.#tickets[parent] as Ticket)) break;
      this.#set(hole, this.#tickets[parent] as Ticket);
      hole = parent;
    }
    this.#set(hole, ticket);
  }

  /** Moves the hole at `place` towards the leaves until `ticket` fits; returns where that is. */
  #sink(place: number, ticket: Ticket): number {
    const tickets = this.#tickets;
    let hole = place;
    for (let child = 2 * hole + 1; child < tickets.length; child = 2 * hole + 1) {
      if (child + 1 < tickets.length && isSooner(tickets[child + 1] as Ticket, tickets[child] as Ticket)) child++;
      if (!isSooner(tickets[child] as Ticket, ticket)) break;
      this.#set(hole, tickets[child] as Ticket);
      hole = child;
    }
    return hole;
  }

  #set(place: number, ticket: Ticket): void {
    this.#tickets[place] = ticket;
    ticket.duePlace = place;
  }
}

function isSooner(one: Ticket, other: Ticket): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.number < other.number);
}
