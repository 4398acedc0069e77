import type { Flight } from "./flight.ts";
import type { Stay } from "./kv-mirror.ts";
import type { Ledger } from "./ledger.ts";
import type { Member } from "./member.ts";
import type { Pool } from "./pool.ts";
import type { Prefix } from "./prefix-hash.ts";
import type { CacheEvent, EndpointShare, SharedWork } from "./shared-work.ts";

/**
 * Several balancers in front of the same endpoints: each tells the others what it has in flight and holds, and what it
 * did to their caches since; what the others say counts like its own work. Its own is exact, theirs as old as the last
 * message.
 */
export class Sharing {
  readonly #pool: Pool;
  readonly #ledger: Ledger;
  /** Ids of endpoints where something changed since the last message, some of which may have left. */
  readonly #changed: Set<string>;
  readonly #others = new Map<string, OtherBalancer>();
  /** Since the last message; undefined: nobody asked yet, so nothing is kept. */
  #cache: CacheEvent[] | undefined;
  /** Blocks that those events name. */
  #blocks = 0;
  #sequence = 0;
  #requests = 0;
  /** Somebody asks for changes as they come. */
  #isPrompt = false;

  constructor(pool: Pool, ledger: Ledger, changed: Set<string>) {
    this.#pool = pool;
    this.#ledger = ledger;
    this.#changed = changed;
  }

  /** A request was sent. */
  sent(flight: Flight): void {
    if (this.#cache === undefined || this.#cache.length >= MAX_EVENTS) return;
    const { promptTokens } = flight.request;
    flight.sharedAs = ++this.#requests;
    const endpointId = flight.member.endpoint.id;
    const prefix = startOf(flight.request.prefix, MAX_BLOCKS - this.#blocks);
    this.#blocks += prefix?.hashes.length ?? 0;
    this.#cache.push({ kind: "sent", request: flight.sharedAs, endpointId, prefix, promptTokens });
  }

  /** It is over. */
  ended({ sharedAs, lease, isComputed }: Flight): void {
    if (sharedAs === undefined) return;
    this.#cache?.push({ kind: "ended", request: sharedAs, generatedTokens: lease.generatedTokens, isComputed });
  }

  /** The message to the others, of all endpoints. */
  share(nowMs: number): SharedWork {
    return this.#message(true, this.#pool.members, nowMs);
  }

  /** The message of those endpoints where something changed since the last one; undefined: there is none. */
  shareChanges(nowMs: number): SharedWork | undefined {
    this.#isPrompt = true;
    if (this.#changed.size === 0 && !this.#cache?.length) return undefined;
    return this.#message(false, this.#known(this.#changed), nowMs);
  }

  /** What the balancer `from` said, in place of what it said before; undefined: it is gone, and its work with it. */
  adopt(from: string, work: SharedWork | undefined, nowMs: number): void {
    const endpoints = work?.endpoints ?? {};
    const isPrompt = work?.isPrompt === true;
    const touched = new Set(work?.isWhole === false ? this.#known(Object.keys(endpoints)) : this.#pool.members);
    for (const member of touched) {
      const { id } = member.endpoint;
      const share = Object.hasOwn(endpoints, id) ? endpoints[id] : undefined;
      this.#ledger.adopt(id, from, share?.account, isPrompt, nowMs);
      member.held.adopt(from, share?.held, isPrompt, nowMs);
      member.observer.adopt(from, share?.done);
      for (const sample of share?.samples ?? []) member.observer.learn(sample, nowMs);
    }
    const other = this.#others.get(from) ?? new OtherBalancer(this.#pool);
    other.follow(work, touched, nowMs);
    if (work === undefined) this.#others.delete(from);
    else this.#others.set(from, other);
    for (const { mirror, kvTokens } of touched) mirror.trim(kvTokens);
  }

  #message(isWhole: boolean, members: Iterable<Member>, nowMs: number): SharedWork {
    const cache = this.#cache ?? [];
    // Without a prototype: an endpoint may have any name.
    const endpoints: Record<string, EndpointShare> = Object.create(null);
    for (const { endpoint, held, observer, speed } of members) {
      const account = this.#ledger.own(endpoint.id, nowMs);
      const samples = speed.takeSamples();
      endpoints[endpoint.id] = { account, held: held.own(nowMs), done: observer.ownDone(), samples };
    }
    this.#cache = [];
    this.#blocks = 0;
    this.#changed.clear();
    return { sequence: ++this.#sequence, isWhole, isPrompt: this.#isPrompt, endpoints, cache };
  }

  /** Those of these endpoints that are here. */
  #known(ids: Iterable<string>): readonly Member[] {
    const members: Member[] = [];
    for (const id of ids) {
      const member = this.#pool.member(id);
      if (member !== undefined) members.push(member);
    }
    return members;
  }
}

/** Another balancer's requests in the mirrors, by the numbers it gives them. */
class OtherBalancer {
  readonly #pool: Pool;
  readonly #stays = new Map<number, { readonly member: Member; readonly stay: Stay }>();
  #sequence: number | undefined;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** @param touched Takes those whose caches change. */
  follow(work: SharedWork | undefined, touched: Set<Member>, nowMs: number): void {
    // After a gap some ends may never be told: better to take all for over than to keep one for ever.
    if (work === undefined || (this.#sequence !== undefined && work.sequence !== this.#sequence + 1))
      this.#leaveAll(touched, nowMs);
    this.#sequence = work?.sequence;
    for (const event of work?.cache ?? []) {
      if (event.kind === "ended") {
        this.#leave(event.request, event.generatedTokens, event.isComputed, touched, nowMs);
        continue;
      }
      const member = this.#pool.member(event.endpointId);
      if (member === undefined) continue;
      this.#stays.set(event.request, { member, stay: member.mirror.enter(event.prefix, event.promptTokens, nowMs) });
      touched.add(member);
    }
  }

  #leave(request: number, generatedTokens: number, isComputed: boolean, touched: Set<Member>, nowMs: number): void {
    const known = this.#stays.get(request);
    if (known === undefined) return;
    known.member.mirror.leave(known.stay, generatedTokens, isComputed, nowMs);
    touched.add(known.member);
    this.#stays.delete(request);
  }

  #leaveAll(touched: Set<Member>, nowMs: number): void {
    for (const request of [...this.#stays.keys()]) this.#leave(request, 0, true, touched, nowMs);
  }
}

/** As much of a prompt as so many blocks hold. */
function startOf(prefix: Prefix | undefined, blocks: number): Prefix | undefined {
  if (prefix === undefined || prefix.hashes.length <= blocks) return prefix;
  return blocks === 0 ? undefined : { ...prefix, hashes: prefix.hashes.slice(0, blocks) };
}

/** Events after which a message names no more requests as sent: of those the others learn when they meet their prompts. */
const MAX_EVENTS = 20_000;

/** Blocks of prompts after which a message names no more: half a megabyte, four million tokens. The caches of others' miss them. */
const MAX_BLOCKS = 65_536;
