import type { Ledger } from "./ledger.ts";
import type { Member, Pool } from "./pool.ts";
import type { RequestProfile } from "./request.ts";
import type { EndpointShare, SentPrefix, SharedWork } from "./shared-work.ts";

/**
 * Several balancers in front of the same endpoints: each tells the others what it has in flight and holds, and what it
 * sent since; what the others say counts like its own work. Its own is exact, theirs as old as the last message.
 */
export class Sharing {
  readonly #pool: Pool;
  readonly #ledger: Ledger;
  /** Since the last message; undefined: nobody asked yet, so nothing is kept. */
  #sent: SentPrefix[] | undefined;

  constructor(pool: Pool, ledger: Ledger) {
    this.#pool = pool;
    this.#ledger = ledger;
  }

  /** A request was sent. */
  sent(endpointId: string, { prefix, promptTokens }: RequestProfile): void {
    if (this.#sent === undefined || prefix === undefined || this.#sent.length >= MAX_SENT) return;
    this.#sent.push({ endpointId, prefix, promptTokens });
  }

  /** The message to the others. */
  share(nowMs: number): SharedWork {
    const sent = this.#sent ?? [];
    this.#sent = [];
    const endpoints: Record<string, EndpointShare> = {};
    for (const { endpoint, held, mirror } of this.#pool.members) {
      const account = this.#ledger.own(endpoint.id, nowMs);
      endpoints[endpoint.id] = { account, held: held.own(), sharedTokens: mirror.sharedTokens };
    }
    return { endpoints, sent };
  }

  /** What the balancer `from` said, in place of what it said before; undefined: it is gone, and its work with it. */
  adopt(from: string, work: SharedWork | undefined, nowMs: number): void {
    for (const member of this.#pool.members) this.#adoptAt(member, from, work?.endpoints[member.endpoint.id], nowMs);
    for (const { endpointId, prefix, promptTokens } of work?.sent ?? []) {
      const mirror = this.#pool.member(endpointId)?.mirror;
      // Its requests are in the account; here only what they leave in the cache is of interest.
      mirror?.leave(mirror.enter(prefix, promptTokens, nowMs), 0, true, nowMs);
    }
    for (const { mirror, kvTokens } of this.#pool.members) mirror.trim(kvTokens);
  }

  #adoptAt(member: Member, from: string, share: EndpointShare | undefined, nowMs: number): void {
    this.#ledger.adopt(member.endpoint.id, from, share?.account, nowMs);
    member.held.adopt(from, share?.held);
    if (share === undefined) member.othersSharedTokens.delete(from);
    else member.othersSharedTokens.set(from, share.sharedTokens);
  }
}

/** Prompts a message names at most: of more, the others learn when they meet them. */
const MAX_SENT = 10_000;
