import { goesBefore, type Tenant } from "./hold-order.ts";
import { SortedTickets } from "./sorted-tickets.ts";
import type { Ticket } from "./ticket.ts";

/**
 * Tickets of one urgency that are held for the same. What tenants got moves with every token, so that whose turn it is
 * is asked when somebody wants to know; work is summed up by key alone, which is what it comes to when turns even out.
 */
export class HoldingClass {
  readonly urgency: number;
  readonly all: SortedTickets = new SortedTickets();
  readonly #byTenant = new Map<Tenant, SortedTickets>();

  constructor(urgency: number) {
    this.urgency = urgency;
  }

  /** Of each tenant that has any. */
  get byTenant(): ReadonlyMap<Tenant, SortedTickets> {
    return this.#byTenant;
  }

  get first(): Ticket | undefined {
    if (this.#byTenant.size === 1) return this.all.first;
    let first: Ticket | undefined;
    for (const tickets of this.#byTenant.values()) first = earlierOf(tickets.first, first);
    return first;
  }

  /** The first of those that are asked for. */
  firstOf(isAskedFor: (ticket: Ticket) => boolean): Ticket | undefined {
    let first: Ticket | undefined;
    for (const { tickets } of this.#byTenant.values()) first = earlierOf(tickets.find(isAskedFor), first);
    return first;
  }

  /** Behind those of its tenant that have the same key. */
  add(ticket: Ticket): void {
    let own = this.#byTenant.get(ticket.tenant);
    if (own === undefined) {
      own = new SortedTickets();
      this.#byTenant.set(ticket.tenant, own);
    }
    own.add(ticket);
    this.all.add(ticket);
  }

  remove(ticket: Ticket): void {
    const own = this.#byTenant.get(ticket.tenant) as SortedTickets;
    own.remove(ticket);
    if (own.size === 0) this.#byTenant.delete(ticket.tenant);
    this.all.remove(ticket);
  }
}

function earlierOf(one: Ticket | undefined, other: Ticket | undefined): Ticket | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return goesBefore(one, other) ? one : other;
}
