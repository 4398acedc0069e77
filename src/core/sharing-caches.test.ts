import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { routedNow } from "../../test/support/decisions.ts";
import { times } from "../../test/support/fleet.ts";
import { Balancer } from "./balancer.ts";
import { endpoint } from "./endpoint.ts";
import type { Lease } from "./ledger.ts";
import type { Member } from "./member.ts";
import { type RequestProfile, requestProfile } from "./request.ts";

const brief = requestProfile({ promptTokens: 100, expectedOutputTokens: 10 });
const prefix = { hashes: [1, 2, 3, 4], tokensPerBlock: 64 };
const cached = requestProfile({ promptTokens: 300, expectedOutputTokens: 10, prefix });

/** Sends at once, whatever waits. */
function randomly(id: string, kvCapacityTokens = 1000): Balancer {
  return new Balancer({ endpoints: [endpoint({ id, kvCapacityTokens })], policy: "random" });
}

function memberOf(balancer: Balancer): Member {
  const [member] = balancer.members;
  if (member === undefined) throw new RangeError("no endpoint");
  return member;
}

describe("prompts of another balancer", () => {
  /** `one` follows `other`, which was asked once already and has sent `cached`. */
  function following() {
    const [one, other] = [randomly("a"), randomly("a")];
    const tell = (nowMs = 0) => one.adopt("other", other.share(nowMs), nowMs);
    tell();
    const { lease } = routedNow(other, cached, 0);
    tell();
    const { mirror } = memberOf(one);
    /** More than the cache holds, one after the other. */
    const flood = () => {
      for (let first = 100; first < 150; first += 10) {
        const hashes = times(10, (block) => first + block);
        const passing = requestProfile({ promptTokens: 640, prefix: { hashes, tokensPerBlock: 64 } });
        one.finish(routedNow(one, passing, 0).lease, { kind: "completed" }, 0);
      }
    };
    return { one, other, lease, tell, mirror, flood };
  }

  it("stay until they are over, whatever else passes, and then go in their turn", () => {
    const { one, other, lease, tell, flood } = following();
    flood();
    expect(memberOf(one).cachedTokens(cached)).toBe(256);
    other.finish(lease, { kind: "completed" }, 0);
    tell();
    expect(memberOf(one).cachedTokens(cached)).toBe(256);
    flood();
    expect(memberOf(one).cachedTokens(cached)).toBe(0);
  });

  it("leave behind what was generated, in what is evictable", () => {
    const { other, lease, tell, mirror } = following();
    expect(mirror.evictableTokens).toBe(0);
    other.firstToken(lease, 1);
    other.progress(lease, 19, 2);
    other.finish(lease, { kind: "aborted" }, 3);
    tell(4);
    expect(mirror.evictableTokens).toBe(300 + 20);
  });

  it("leave nothing when they ended before they were computed", () => {
    const { one, other, lease, tell, mirror } = following();
    other.finish(lease, { kind: "aborted" }, 1);
    tell(2);
    expect([memberOf(one).cachedTokens(cached), mirror.size, mirror.evictableTokens]).toEqual([0, 0, 0]);
  });

  it("begin and end in one message", () => {
    const { one, other, tell, mirror } = following();
    other.finish(routedNow(other, brief, 1).lease, { kind: "completed" }, 2);
    tell(3);
    expect([memberOf(one).cachedTokens(cached), mirror.evictableTokens]).toEqual([256, 100]);
  });

  it("push out what has no room beside them, as soon as they are told", () => {
    const { one, other, lease, tell, mirror, flood } = following();
    flood();
    // Of 1,000 tokens 300 are in use, and half of a last block: ten blocks of 64 have room beside them.
    expect(mirror.evictableTokens).toBe(640);
    times(3, () => routedNow(other, brief, 1));
    tell(2);
    expect(mirror.evictableTokens).toBe(320);
    other.finish(lease, { kind: "completed" }, 3);
    times(12, () => other.finish(routedNow(other, brief, 4).lease, { kind: "completed" }, 5));
    tell(6);
    expect(mirror.evictableTokens).toBe(1000 - 3 * 108);
    expect(memberOf(one).cachedTokens(cached)).toBe(0);
  });

  it("are all taken for over where a message is missing, once and for all, and what it tells besides is followed", () => {
    const { one, other, lease, tell, mirror } = following();
    other.share(1);
    const { lease: later } = routedNow(other, cached, 2);
    tell(3);
    // Its tail alone: the newcomer uses its blocks.
    expect([mirror.evictableTokens, mirror.sharedTokens]).toEqual([44, 0]);
    other.finish(lease, { kind: "completed" }, 4);
    tell(5);
    expect(mirror.evictableTokens).toBe(44);
    other.finish(later, { kind: "completed" }, 6);
    tell(7);
    expect(mirror.evictableTokens).toBe(44 + 300);
    expect(memberOf(one).cachedTokens(cached)).toBe(256);
  });

  it("are not taken for over by a first message with whatever number, or by those that follow each other", () => {
    const { other, mirror, tell } = following();
    times(3, (i) => tell(i));
    expect(mirror.evictableTokens).toBe(0);
    const late = randomly("a");
    late.adopt("other", other.share(9), 9);
    const { lease } = routedNow(other, cached, 9);
    late.adopt("other", other.share(10), 10);
    expect([memberOf(late).cachedTokens(cached), memberOf(late).mirror.evictableTokens]).toEqual([256, 0]);
    other.finish(lease, { kind: "completed" }, 11);
    late.adopt("other", other.share(12), 12);
    expect(memberOf(late).mirror.evictableTokens).toBe(300);
  });

  it("are over when it is gone, and what comes under its name is another's", () => {
    const { one, mirror } = following();
    one.adopt("other", undefined, 1);
    expect([mirror.evictableTokens, memberOf(one).cachedTokens(cached)]).toEqual([300, 256]);
    const next = randomly("a");
    next.share(0);
    const { lease } = routedNow(next, cached, 2);
    one.adopt("other", next.share(3), 3);
    expect(mirror.evictableTokens).toBe(44);
    next.finish(lease, { kind: "completed" }, 4);
    one.adopt("other", next.share(5), 5);
    expect(mirror.evictableTokens).toBe(44 + 300);
  });

  it("are over when it began anew without a word, and its numbers with it", () => {
    const { one, mirror } = following();
    const anew = randomly("a");
    one.adopt("other", anew.share(1), 1);
    expect(mirror.evictableTokens).toBe(300);
    const { lease } = routedNow(anew, brief, 2);
    one.adopt("other", anew.share(3), 3);
    anew.finish(lease, { kind: "completed" }, 4);
    one.adopt("other", anew.share(5), 5);
    expect(mirror.evictableTokens).toBe(300 + 100);
  });

  it("are each balancer's own, though their numbers are the same", () => {
    const { one, other, lease, tell, mirror } = following();
    const third = randomly("a");
    third.share(0);
    const { lease: thirds } = routedNow(third, cached, 0);
    one.adopt("third", third.share(1), 1);
    expect(mirror.sharedTokens).toBe(256);
    other.finish(lease, { kind: "completed" }, 2);
    tell(2);
    expect([mirror.sharedTokens, mirror.evictableTokens]).toEqual([0, 44]);
    third.finish(thirds, { kind: "completed" }, 3);
    one.adopt("third", third.share(4), 4);
    expect(mirror.evictableTokens).toBe(44 + 300);
  });

  it("are nobody's at an endpoint that is not one's own, and at another server under its name", () => {
    const { one, other, lease, tell } = following();
    const { mirror: former } = memberOf(one);
    other.setEndpoints([endpoint({ id: "a" }), endpoint({ id: "b" })], 1);
    const leases = times(10, () => routedNow(other, brief, 1).lease);
    one.setEndpoints([endpoint({ id: "a", url: "http://new", kvCapacityTokens: 1000 })], 1);
    tell(2);
    for (const each of [lease, ...leases]) other.finish(each, { kind: "completed" }, 3);
    tell(4);
    const there = leases.filter(({ endpointId }) => endpointId === "a").length;
    expect(there).toBeGreaterThan(0);
    expect(there).toBeLessThan(10);
    const { mirror } = memberOf(one);
    expect([memberOf(one).cachedTokens(cached), mirror.evictableTokens]).toEqual([0, 100 * there]);
    expect([former.evictableTokens, former.size]).toEqual([300, 5]);
  });
});

/** Something that happens at one balancer; `pick` chooses among the requests in flight there, if any are. */
type Happening =
  | { readonly kind: "send"; readonly request: RequestProfile }
  | { readonly kind: "token" | "complete" | "abort"; readonly pick: number }
  | { readonly kind: "tell"; readonly isLost: boolean };

const anyRequest: fc.Arbitrary<RequestProfile> = fc
  .record({ branch: fc.constantFrom(0, 1, 2), blocks: fc.nat(6), tailTokens: fc.nat(40) })
  .map(({ branch, blocks, tailTokens }) => {
    // The first two blocks are everybody's.
    const hashes = times(blocks, (block) => (block < 2 ? block : 100 * (branch + 1) + block));
    return requestProfile({ promptTokens: 64 * blocks + tailTokens, prefix: { hashes, tokensPerBlock: 64 } });
  });

function happenings(losses: fc.Arbitrary<boolean>): fc.Arbitrary<Happening[]> {
  const send = fc.record({ kind: fc.constant("send" as const), request: anyRequest });
  const move = fc.record({ kind: fc.constantFrom("token", "complete", "abort"), pick: fc.nat() });
  const tell = fc.record({ kind: fc.constant("tell" as const), isLost: losses });
  return fc.array(fc.oneof(send, move, tell), { maxLength: 60 });
}

/** A balancer that sends, and one that hears of it. */
class Pair {
  readonly #inFlight: Lease[] = [];
  readonly teller: Balancer;
  readonly hearer: Balancer;
  #nowMs = 0;

  constructor() {
    [this.teller, this.hearer] = [randomly("a", 1e6), randomly("a", 1e6)];
    this.tell();
  }

  tell(isLost = false): void {
    const message = this.teller.share(++this.#nowMs);
    if (!isLost) this.hearer.adopt("teller", message, this.#nowMs);
  }

  happen(happening: Happening): void {
    if (happening.kind === "tell") {
      this.tell(happening.isLost);
      return;
    }
    this.#nowMs++;
    if (happening.kind === "send") {
      this.#inFlight.push(routedNow(this.teller, happening.request, this.#nowMs).lease);
      return;
    }
    const at = happening.pick % this.#inFlight.length;
    const lease = this.#inFlight[at];
    if (lease === undefined) return;
    if (happening.kind !== "abort") this.teller.firstToken(lease, this.#nowMs);
    if (happening.kind === "token") return;
    this.#inFlight.splice(at, 1);
    this.teller.finish(lease, { kind: happening.kind === "abort" ? "aborted" : "completed" }, this.#nowMs);
  }

  endAll(): void {
    for (const lease of this.#inFlight.splice(0)) this.teller.finish(lease, { kind: "aborted" }, ++this.#nowMs);
  }
}

/** What is believed of an endpoint's memory. */
function memoryOf(balancer: Balancer) {
  const { mirror, kvTokens } = memberOf(balancer);
  const { size, evictableTokens, sharedTokens } = mirror;
  return { kvTokens, size, evictableTokens, sharedTokens };
}

describe("a cache that is followed from message to message", () => {
  it("is believed to hold what its balancer believes", () => {
    fc.assert(
      fc.property(happenings(fc.constant(false)), anyRequest, (all, asked) => {
        const pair = new Pair();
        for (const happening of all) {
          pair.happen(happening);
          if (happening.kind === "tell") expect(memoryOf(pair.hearer)).toEqual(memoryOf(pair.teller));
        }
        pair.tell();
        expect(memoryOf(pair.hearer)).toEqual(memoryOf(pair.teller));
        expect(memberOf(pair.hearer).cachedTokens(asked)).toBe(memberOf(pair.teller).cachedTokens(asked));
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it("has nothing in use when all is over, whichever messages are lost", () => {
    fc.assert(
      fc.property(happenings(fc.boolean()), fc.boolean(), (all, isLost) => {
        const pair = new Pair();
        for (const happening of all) pair.happen(happening);
        pair.endAll();
        pair.tell(isLost);
        pair.tell();
        expect(memoryOf(pair.hearer)).toMatchObject({ kvTokens: 0, sharedTokens: 0 });
        const { mirror } = memberOf(pair.hearer);
        mirror.trim(Number.POSITIVE_INFINITY);
        expect([mirror.size, mirror.evictableTokens]).toEqual([0, 0]);
      }),
      { seed: 1, numRuns: 300 },
    );
  });
});
