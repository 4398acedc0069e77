import type { Ticket } from "./ticket.ts";

/** Held tickets in the order of their keys. */
export class SortedTickets {
  readonly #tickets: Ticket[] = [];
  /** Theirs, side by side to be searched: to ask ticket after ticket is a walk through memory. */
  readonly #keys: number[] = [];
  /** Work of the first n + 1 tickets; up to date for the first `#summed`. */
  readonly #tokens: number[] = [];
  readonly #pairs: number[] = [];
  #summed = 0;

  get tickets(): readonly Ticket[] {
    return this.#tickets;
  }

  get size(): number {
    return this.#tickets.length;
  }

  get first(): Ticket | undefined {
    return this.#tickets[0];
  }

  /** Tickets with a smaller key. */
  countBefore(key: number): number {
    return this.#search((other) => other < key);
  }

  /** Tickets with this key or a smaller one. */
  countUpTo(key: number): number {
    return this.#search((other) => other <= key);
  }

  /** Prefill of the first `count` tickets. */
  prefillTokens(count: number): number {
    this.#sumUp();
    return this.#tokens[count - 1] ?? 0;
  }

  /** Attention pairs of the first `count` tickets. */
  prefillPairs(count: number): number {
    this.#sumUp();
    return this.#pairs[count - 1] ?? 0;
  }

  /** Behind those with the same key. */
  add(ticket: Ticket): void {
    const place = this.countUpTo(ticket.key);
    this.#tickets.splice(place, 0, ticket);
    this.#keys.splice(place, 0, ticket.key);
    this.#summed = Math.min(this.#summed, place);
  }

  remove(ticket: Ticket): void {
    const place = this.#tickets.indexOf(ticket, this.countBefore(ticket.key));
    this.#tickets.splice(place, 1);
    this.#keys.splice(place, 1);
    this.#summed = Math.min(this.#summed, place);
  }

  #search(isAhead: (key: number) => boolean): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAhead(this.#keys[middle] as number)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #sumUp(): void {
    for (let at = this.#summed; at < this.#tickets.length; at++) {
      const { prefillTokens, prefillPairs } = (this.#tickets[at] as Ticket).heldPlace;
      this.#tokens[at] = (at === 0 ? 0 : (this.#tokens[at - 1] as number)) + prefillTokens;
      this.#pairs[at] = (at === 0 ? 0 : (this.#pairs[at - 1] as number)) + prefillPairs;
    }
    this.#summed = this.#tickets.length;
  }
}
