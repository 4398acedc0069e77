import type { Flight } from "./flight.ts";
import type { KvMirror, Stay } from "./kv-mirror.ts";
import type { Ledger } from "./ledger.ts";
import type { Pool } from "./pool.ts";
import type { CacheEvent, EndpointShare, SharedWork } from "./shared-work.ts";

/**
 * Several balancers in front of the same endpoints: each tells the others what it has in flight and holds, and what it
 * did to their caches since; what the others say counts like its own work. Its own is exact, theirs as old as the last
 * message.
 */
export class Sharing {
  readonly #pool: Pool;
  readonly #ledger: Ledger;
  readonly #others = new Map<string, OtherBalancer>();
  /** Since the last message; undefined: nobody asked yet, so nothing is kept. */
  #cache: CacheEvent[] | undefined;
  #sequence = 0;
  #requests = 0;

  constructor(pool: Pool, ledger: Ledger) {
    this.#pool = pool;
    this.#ledger = ledger;
  }

  /** A request was sent. */
  sent(flight: Flight): void {
    if (this.#cache === undefined || this.#cache.length >= MAX_EVENTS) return;
    const { prefix, promptTokens } = flight.request;
    flight.sharedAs = ++this.#requests;
    const endpointId = flight.member.endpoint.id;
    this.#cache.push({ kind: "sent", request: flight.sharedAs, endpointId, prefix, promptTokens });
  }

  /** It is over. */
  ended({ sharedAs, lease, isComputed }: Flight): void {
    if (sharedAs === undefined) return;
    this.#cache?.push({ kind: "ended", request: sharedAs, generatedTokens: lease.generatedTokens, isComputed });
  }

  /** The message to the others. */
  share(nowMs: number): SharedWork {
    const cache = this.#cache ?? [];
    this.#cache = [];
    const endpoints: Record<string, EndpointShare> = {};
    for (const { endpoint, held, observer } of this.#pool.members) {
      const account = this.#ledger.own(endpoint.id, nowMs);
      endpoints[endpoint.id] = { account, held: held.own(), done: observer.ownDone() };
    }
    return { sequence: ++this.#sequence, endpoints, cache };
  }

  /** What the balancer `from` said, in place of what it said before; undefined: it is gone, and its work with it. */
  adopt(from: string, work: SharedWork | undefined, nowMs: number): void {
    for (const { endpoint, held, observer } of this.#pool.members) {
      const share = work?.endpoints[endpoint.id];
      this.#ledger.adopt(endpoint.id, from, share?.account, nowMs);
      held.adopt(from, share?.held);
      observer.adopt(from, share?.done);
    }
    const other = this.#others.get(from) ?? new OtherBalancer();
    other.follow(work, (endpointId) => this.#pool.member(endpointId)?.mirror, nowMs);
    if (work === undefined) this.#others.delete(from);
    else this.#others.set(from, other);
    for (const { mirror, kvTokens } of this.#pool.members) mirror.trim(kvTokens);
  }
}

/** Another balancer's requests in the mirrors, by the numbers it gives them. */
class OtherBalancer {
  readonly #stays = new Map<number, { readonly mirror: KvMirror; readonly stay: Stay }>();
  #sequence: number | undefined;

  follow(work: SharedWork | undefined, mirrorOf: (endpointId: string) => KvMirror | undefined, nowMs: number): void {
    // After a gap some ends may never be told: better to take all for over than to keep one for ever.
    if (work === undefined || (this.#sequence !== undefined && work.sequence !== this.#sequence + 1))
      this.#leaveAll(nowMs);
    this.#sequence = work?.sequence;
    for (const event of work?.cache ?? []) {
      if (event.kind === "ended") {
        this.#leave(event.request, event.generatedTokens, event.isComputed, nowMs);
        continue;
      }
      const mirror = mirrorOf(event.endpointId);
      const stay = mirror?.enter(event.prefix, event.promptTokens, nowMs);
      if (mirror !== undefined && stay !== undefined) this.#stays.set(event.request, { mirror, stay });
    }
  }

  #leave(request: number, generatedTokens: number, isComputed: boolean, nowMs: number): void {
    const held = this.#stays.get(request);
    held?.mirror.leave(held.stay, generatedTokens, isComputed, nowMs);
    this.#stays.delete(request);
  }

  #leaveAll(nowMs: number): void {
    for (const request of [...this.#stays.keys()]) this.#leave(request, 0, true, nowMs);
  }
}

/** Events after which a message names no more requests as sent: of those the others learn when they meet their prompts. */
const MAX_EVENTS = 20_000;
