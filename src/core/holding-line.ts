import type { Rank, Tenant } from "./hold-order.ts";
import { HoldingClass } from "./holding-class.ts";
import type { HeldPrefill, HeldWork } from "./policy.ts";
import type { HeldShare } from "./shared-work.ts";
import type { SortedTickets } from "./sorted-tickets.ts";
import type { Ticket } from "./ticket.ts";

/** Tickets held for one endpoint, or for whichever has room, by urgency. */
export class HoldingLine implements HeldWork {
  /** The most urgent first; none is empty. */
  #classes: readonly HoldingClass[] = [];
  #size = 0;
  /** What other balancers hold for the endpoint, each as it said last. */
  readonly #others = new Map<string, HeldShare>();
  /** How many those are together. */
  #othersRequests = 0;
  /** The first of each other balancer's, by this one's clock. */
  readonly #othersFirst = new Map<string, Turn>();

  get requests(): number {
    return this.#size + this.#othersRequests;
  }

  /** The most urgent first; none is empty. */
  get classes(): readonly HoldingClass[] {
    return this.#classes;
  }

  get first(): Ticket | undefined {
    return this.#classes[0]?.first;
  }

  /** The first of those that are asked for. */
  firstOf(isAskedFor: (ticket: Ticket) => boolean): Ticket | undefined {
    const { first } = this;
    if (first === undefined || isAskedFor(first)) return first;
    for (const each of this.#classes) {
      const found = each.firstOf(isAskedFor);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  aheadOf(key: number, urgency: number): HeldPrefill {
    if (this.requests === 0) return NOTHING;
    // Of the keys of those that others hold nothing is known: half of them go before it.
    let prefillTokens = this.#othersSum("prefillTokens") / 2;
    let prefillPairs = this.#othersSum("prefillPairs") / 2;
    for (const { urgency: held, all } of this.#classes) {
      if (held < urgency) break;
      const ahead = held > urgency ? all.size : all.countBefore(key);
      prefillTokens += all.prefillTokens(ahead);
      prefillPairs += all.prefillPairs(ahead);
    }
    return { prefillTokens, prefillPairs };
  }

  countBehind(key: number, urgency: number): number {
    let count = this.#othersRequests / 2;
    for (const { urgency: held, all } of this.#classes) {
      if (held <= urgency) count += all.size;
      if (held === urgency) count -= all.countUpTo(key);
    }
    return count;
  }

  /**
   * What the balancer `from` holds for the endpoint, in place of what it said before; undefined: nothing any more.
   * @param isPrompt It tells each change as it comes. Otherwise its first may have gone long ago, and nobody waits for it.
   */
  adopt(from: string, share: HeldShare | undefined, isPrompt: boolean, nowMs: number): void {
    if (share === undefined || share.requests === 0) this.#others.delete(from);
    else this.#others.set(from, share);
    const first = isPrompt ? share?.first : undefined;
    if (first === undefined) this.#othersFirst.delete(from);
    else this.#othersFirst.set(from, { urgency: first.urgency, key: nowMs - first.keyAgoMs });
    this.#othersRequests = this.#othersSum("requests");
  }

  /** Somebody whom another balancer holds for the endpoint goes before one of this turn. What tenants got there is not known. */
  isOthersTurn({ urgency, key }: Turn): boolean {
    for (const first of this.#othersFirst.values()) {
      if (first.urgency > urgency || (first.urgency === urgency && first.key < key)) return true;
    }
    return false;
  }

  /** What is held here. */
  own(nowMs: number): HeldShare {
    let prefillTokens = 0;
    let prefillPairs = 0;
    for (const { all } of this.#classes) {
      prefillTokens += all.prefillTokens(all.size);
      prefillPairs += all.prefillPairs(all.size);
    }
    const held = { requests: this.#size, prefillTokens, prefillPairs };
    const { first } = this;
    if (first === undefined) return held;
    return { ...held, first: { urgency: first.urgency, keyAgoMs: nowMs - first.key } };
  }

  /** A ticket that has its place here. */
  add(ticket: Ticket): void {
    this.#classOf(ticket.urgency).add(ticket);
    this.#size++;
  }

  remove(ticket: Ticket): void {
    const own = this.#classOf(ticket.urgency);
    own.remove(ticket);
    this.#size--;
    if (own.all.size === 0) this.#classes = this.#classes.filter((each) => each !== own);
  }

  /** A copy: the most urgent first; of one urgency those of whom got least first. */
  tickets(): readonly Ticket[] {
    return inTurn(this.#classes);
  }

  #classOf(urgency: number): HoldingClass {
    const found = this.#classes.find((each) => each.urgency === urgency);
    if (found !== undefined) return found;
    const added = new HoldingClass(urgency);
    this.#classes = [...this.#classes, added].sort(moreUrgentFirst);
    return added;
  }

  #othersSum(sum: "requests" | "prefillTokens" | "prefillPairs"): number {
    let total = 0;
    for (const share of this.#others.values()) total += share[sum];
    return total;
  }
}

/** The tickets of these classes, tenant by tenant, as tenants take their turns by now. */
export function inTurn(classes: readonly HoldingClass[]): readonly Ticket[] {
  const byServed = ([one]: TenantTickets, [other]: TenantTickets) => one.servedTokens - other.servedTokens;
  return classes
    .toSorted(moreUrgentFirst)
    .flatMap(({ byTenant }) => [...byTenant].sort(byServed).flatMap(([, { tickets }]) => tickets));
}

type TenantTickets = readonly [Tenant, SortedTickets];

/** Where in the order a request is, its tenant aside. */
type Turn = Pick<Rank, "urgency" | "key">;

function moreUrgentFirst(one: HoldingClass, other: HoldingClass): number {
  return other.urgency - one.urgency;
}

const NOTHING: HeldPrefill = { prefillTokens: 0, prefillPairs: 0 };
