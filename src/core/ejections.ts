import type { Lease } from "./ledger.ts";
import type { Member } from "./member.ts";

/**
 * Which members of a pool are ejected, under one cap: what makes many endpoints fail at once is seldom the endpoints,
 * and whoever stays in gets the work of all that are out.
 */
export class Ejections {
  #maxRatio: number;

  /** @param maxRatio Of the members that are usable. */
  constructor(maxRatio: number) {
    this.#maxRatio = maxRatio;
  }

  configure(maxRatio: number): void {
    this.#maxRatio = maxRatio;
  }

  /** `member`, one of `members`, failed a request. True: it is ejected by that. */
  failed(member: Member, lease: Lease, members: readonly Member[], nowMs: number): boolean {
    const { breaker } = member;
    // Of one that takes no requests, what is still in flight there says nothing new.
    if (!member.isUsable) breaker.dismissed(lease);
    if (!breaker.failed(lease, nowMs)) return false;
    if (!breaker.isOpen && this.#excess(members) >= 0) return false;
    member.eject(nowMs);
    return true;
  }

  /** Who is usable has changed: whoever was ejected longest ago comes back until no more are out than may be. */
  review(members: readonly Member[], nowMs: number): readonly Member[] {
    const back: Member[] = [];
    for (let excess = this.#excess(members); excess > 0; excess--) {
      const member = longestEjected(members);
      if (member === undefined) break;
      member.readmit(nowMs);
      back.push(member);
    }
    return back;
  }

  /** How many more are out than may be; below 0: further ones may. */
  #excess(members: readonly Member[]): number {
    let usable = 0;
    let ejected = 0;
    for (const member of members) {
      if (!member.isUsable) continue;
      usable += 1;
      if (member.breaker.isOpen) ejected += 1;
    }
    return ejected - this.#capOf(usable);
  }

  #capOf(usable: number): number {
    if (usable < 2 || this.#maxRatio === 0) return 0;
    return Math.max(1, Math.floor(this.#maxRatio * usable));
  }
}

function longestEjected(members: readonly Member[]): Member | undefined {
  let longest: Member | undefined;
  for (const member of members) {
    if (!member.isUsable || !member.breaker.isOpen) continue;
    if (longest === undefined || member.breaker.openedAtMs < longest.breaker.openedAtMs) longest = member;
  }
  return longest;
}
