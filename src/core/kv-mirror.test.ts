import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ListMirror, type ListStay } from "../../test/support/list-mirror.ts";
import { KvMirror, type Stay } from "./kv-mirror.ts";
import type { Prefix } from "./prefix-hash.ts";
import { ReuseOdds } from "./reuse-odds.ts";

const TOKENS = 64;

/** A chain of blocks by name: equal names from the start are equal prefixes, as the hasher makes them. */
const known = new Map<string, number>();
function chain(path: string, tokensPerBlock = TOKENS): Prefix {
  const hashes = Array.from(path, (_, depth) => {
    const head = path.slice(0, depth + 1);
    const hash = known.get(head) ?? known.size;
    known.set(head, hash);
    return hash;
  });
  return { hashes, tokensPerBlock };
}

/** A mirror, and requests that come and go there. */
class Place {
  readonly reuse = new ReuseOdds();
  readonly mirror: KvMirror;
  usedTokens = 0;

  constructor(capacityTokens: number | undefined) {
    this.mirror = new KvMirror(capacityTokens, this.reuse);
  }

  enter(path: string, { promptTokens = path.length * TOKENS, nowMs = 0 } = {}): Stay {
    const stay = this.mirror.enter(path === "" ? undefined : chain(path), promptTokens, nowMs);
    this.usedTokens += promptTokens;
    this.mirror.trim(this.usedTokens - this.mirror.sharedTokens);
    return stay;
  }

  /** A whole request, which no other overlaps. */
  pass(path: string, generatedTokens = 0, nowMs = 0): void {
    const stay = this.enter(path, { nowMs });
    this.usedTokens = 0;
    this.mirror.leave(stay, generatedTokens, true, nowMs);
    this.mirror.trim(0);
  }

  matched(path: string): number {
    return this.mirror.matchedTokens(chain(path)) / TOKENS;
  }

  /** Blocks that `tokens` more would push out, as "tokens@start". */
  evicted(tokens: number, nowMs = 0): string[] {
    const blocks: string[] = [];
    this.mirror.visitEvicted(tokens, this.usedTokens, nowMs, (blockTokens, startTokens) => {
      blocks.push(`${blockTokens}@${startTokens}`);
    });
    return blocks;
  }
}

describe("what is matched", () => {
  it("is what was sent, from the start up to the first difference", () => {
    const place = new Place(64_000);
    place.enter("abcd");
    expect([place.matched("abcd"), place.matched("abxd"), place.matched("abcdefgh"), place.matched("xbcd")]).toEqual([
      4, 2, 4, 0,
    ]);
  });

  it("is counted in tokens of the prompt that asks, whole ones", () => {
    const place = new Place(64_000);
    place.pass("abc");
    expect(place.mirror.matchedTokens(chain("abc", 50.5))).toBe(151);
  });

  it("is the start alone of a prompt that is longer than the cache", () => {
    const place = new Place(3 * TOKENS);
    const stay = place.enter("abcdefg");
    expect([stay.blocks, stay.tailTokens, place.matched("abcdefg")]).toEqual([3, 4 * TOKENS, 3]);
    place.mirror.leave(stay, 10, true, 0);
    place.mirror.trim(0);
    expect(place.mirror.evictableTokens).toBe(3 * TOKENS);
    expect(place.matched("abcdefg")).toBe(3);
  });

  it("is kept in a cache of unknown size until an assumed one is full", () => {
    const place = new Place(undefined);
    for (let i = 0; i < 3000; i++) place.pass(String.fromCharCode(0x4e00 + i));
    expect(place.mirror.size).toBe(131_072 / TOKENS);
  });
});

describe("a block of a request in flight", () => {
  it("is never let go of, whatever the room", () => {
    const place = new Place(6 * TOKENS);
    const stay = place.enter("abc");
    place.pass("xyz");
    place.mirror.trim(100 * TOKENS);
    expect([place.matched("abc"), place.matched("xyz")]).toEqual([3, 0]);
    place.mirror.leave(stay, 0, true, 0);
    place.mirror.trim(100 * TOKENS);
    expect(place.mirror.size).toBe(0);
  });

  it("is there for whoever comes while it is in flight, and shared for all but the first", () => {
    const place = new Place(64_000);
    const stays = [place.enter("abcd"), place.enter("abx"), place.enter("ab")];
    expect(place.mirror.sharedTokens).toBe(4 * TOKENS);
    const [first, second, third] = stays as [Stay, Stay, Stay];
    place.mirror.leave(first, 0, true, 0);
    expect([place.mirror.sharedTokens, place.mirror.evictableTokens]).toEqual([2 * TOKENS, 2 * TOKENS]);
    place.mirror.leave(second, 0, true, 0);
    place.mirror.leave(third, 0, true, 0);
    expect([place.mirror.sharedTokens, place.mirror.evictableTokens]).toEqual([0, 5 * TOKENS]);
  });

  it("is in flight again for whoever finds it idle", () => {
    const place = new Place(64_000);
    place.pass("abc");
    place.enter("ab");
    expect([place.mirror.evictableTokens, place.mirror.sharedTokens]).toEqual([TOKENS, 0]);
  });

  it("goes with a request that did not get to the end of its prompt", () => {
    const place = new Place(64_000);
    place.pass("ab");
    place.mirror.leave(place.enter("abcd", { promptTokens: 300 }), 0, false, 0);
    expect([place.matched("abcd"), place.mirror.evictableTokens]).toEqual([2, 2 * TOKENS]);
  });

  it("stays when another request, which is over already, had it computed", () => {
    const place = new Place(64_000);
    const unfinished = place.enter("abcdefgh");
    place.mirror.leave(place.enter("abcx"), 0, true, 0);
    place.mirror.leave(unfinished, 0, false, 0);
    expect([place.matched("abcdefgh"), place.matched("abcx")]).toEqual([3, 4]);
    expect(place.mirror.evictableTokens).toBe(4 * TOKENS);
  });

  it("goes when nobody who waited for it had it computed", () => {
    const place = new Place(64_000);
    const stays = [place.enter("abc"), place.enter("abcd")];
    for (const stay of stays) place.mirror.leave(stay, 0, false, 0);
    expect([place.mirror.size, place.mirror.sharedTokens, place.mirror.evictableTokens]).toEqual([0, 0, 0]);
  });

  it("may be told by its hash alone: two of one hash in a prompt do no harm", () => {
    const place = new Place(64_000);
    const twice = { hashes: [7001, 7002, 7001], tokensPerBlock: TOKENS };
    const stay = place.mirror.enter(twice, 200, 0);
    expect([place.mirror.size, place.mirror.sharedTokens]).toEqual([2, TOKENS]);
    place.mirror.leave(stay, 0, true, 0);
    expect([place.mirror.sharedTokens, place.mirror.evictableTokens]).toEqual([0, 2 * TOKENS + 8]);
    // At the start of another prompt, though what came before it there is gone.
    place.mirror.trim(64_000 - TOKENS);
    place.mirror.leave(place.mirror.enter({ hashes: [7002, 7001], tokensPerBlock: TOKENS }, 128, 0), 0, true, 0);
    expect([place.mirror.size, place.mirror.evictableTokens]).toEqual([2, 2 * TOKENS]);
  });
});

describe("what a request leaves", () => {
  it("goes in the order of release: its output and tail, then deep blocks before shallow ones", () => {
    const place = new Place(1000);
    place.mirror.leave(place.enter("abc", { promptTokens: 3 * TOKENS + 20 }), 30, true, 0);
    place.usedTokens = 0;
    expect(place.evicted(1000)).toEqual(["64@128", "64@64", "64@0"]);
    const left = (tokens: number) => {
      place.mirror.trim(1000 - tokens);
      return [place.mirror.evictableTokens, place.matched("abc")];
    };
    // The 50 tokens that nobody can find go first, and only as many of them as must.
    expect(left(3 * TOKENS + 10)).toEqual([3 * TOKENS + 10, 3]);
    expect(left(3 * TOKENS)).toEqual([3 * TOKENS, 3]);
    expect(left(3 * TOKENS - 1)).toEqual([2 * TOKENS, 2]);
    expect(left(TOKENS)).toEqual([TOKENS, 1]);
    expect(left(0)).toEqual([0, 0]);
  });

  it("gives whole tokens back where the room is not whole", () => {
    const place = new Place(1000);
    place.pass("", 100);
    place.mirror.trim(950.5);
    expect([place.mirror.evictableTokens, place.mirror.size]).toEqual([49, 1]);
    place.mirror.trim(1000);
    expect([place.mirror.evictableTokens, place.mirror.size]).toEqual([0, 0]);
  });

  it("goes after what others released before it", () => {
    const place = new Place(6 * TOKENS);
    place.pass("abc");
    place.pass("xyz");
    place.pass("abc");
    place.pass("q");
    expect([place.matched("abc"), place.matched("xyz"), place.matched("q")]).toEqual([3, 2, 1]);
  });

  it("is nothing where it had neither output nor a prompt", () => {
    const place = new Place(1000);
    place.mirror.leave(place.enter(""), 0, true, 0);
    expect(place.mirror.size).toBe(0);
  });
});

describe("visitEvicted", () => {
  it("shows what would have no room, from the least recently used", () => {
    const place = new Place(10 * TOKENS);
    place.pass("abc");
    place.pass("xy");
    expect(place.evicted(5 * TOKENS)).toEqual([]);
    expect(place.evicted(5 * TOKENS + 1)).toEqual(["64@128"]);
    expect(place.evicted(7 * TOKENS)).toEqual(["64@128", "64@64"]);
    expect(place.evicted(9 * TOKENS)).toEqual(["64@128", "64@64", "64@0", "64@64"]);
  });

  it("leaves out outputs and tails, which no prompt will find, but counts the room they take", () => {
    const place = new Place(10 * TOKENS);
    place.pass("ab", 8 * TOKENS);
    expect(place.evicted(8 * TOKENS)).toEqual([]);
    expect(place.evicted(9 * TOKENS)).toEqual(["64@64"]);
  });

  it("counts requests in flight as room taken", () => {
    const place = new Place(10 * TOKENS);
    place.pass("ab");
    place.enter("wxyz");
    expect(place.evicted(4 * TOKENS)).toEqual([]);
    expect(place.evicted(5 * TOKENS)).toEqual(["64@64"]);
  });

  it("tells how often a block is still to be used, by how long it has been idle", () => {
    const place = new Place(2 * TOKENS);
    for (let i = 0; i < 200; i++) place.pass("a", 0, 10_000 * i);
    place.pass("b", 0, 1_994_000);
    const uses: number[] = [];
    place.mirror.visitEvicted(2 * TOKENS, 0, 2_000_000, (_tokens, _start, usesToCome) => uses.push(usesToCome));
    expect(uses).toEqual([place.reuse.usesToCome(10_000), place.reuse.usesToCome(6000)]);
    expect(uses[0]).toBeLessThan(uses[1] as number);
  });

  it("shows nothing where the size of the cache is not known", () => {
    const place = new Place(undefined);
    place.pass("abc");
    expect(place.evicted(1e9)).toEqual([]);
  });
});

describe("a mirror", () => {
  it("lets go of what has no room in a cache that turns out smaller, and of nothing in a larger one", () => {
    const place = new Place(undefined);
    place.pass("abcdef");
    place.mirror.resize(4 * TOKENS);
    place.mirror.trim(0);
    expect(place.matched("abcdef")).toBe(4);
    place.mirror.resize(undefined);
    place.mirror.trim(0);
    expect(place.matched("abcdef")).toBe(4);
  });

  it("holds fewer blocks where a block stands for more tokens, and is bounded where that count is nonsense", () => {
    const mirror = new KvMirror(1600, new ReuseOdds());
    expect(mirror.enter(chain("abcdefghij".repeat(30), 200), 60_000, 0).blocks).toBe(8);
    expect(mirror.enter(chain("abcdefghij".repeat(30), 0), 0, 0).blocks).toBe(100);
  });

  it("is empty once cleared, and requests that were in flight then take nothing with them", () => {
    const place = new Place(64_000);
    const [before, shared] = [place.enter("abc"), place.enter("ab")];
    place.pass("xyz", 100);
    place.mirror.clear();
    expect([place.mirror.size, place.mirror.evictableTokens, place.mirror.sharedTokens]).toEqual([0, 0, 0]);
    const after = place.enter("abcd");
    place.mirror.leave(before, 10, true, 0);
    place.mirror.leave(shared, 10, false, 0);
    expect([place.mirror.size, place.mirror.evictableTokens, place.matched("abcd")]).toEqual([4, 0, 4]);
    place.mirror.leave(after, 0, true, 0);
    expect([place.mirror.evictableTokens, place.mirror.sharedTokens]).toEqual([4 * TOKENS, 0]);
  });

  it("stays within its bound over many prompts of their own under one head, which stays known", () => {
    const capacityBlocks = 10_000;
    const place = new Place(capacityBlocks * TOKENS);
    const hashes = Array.from({ length: 16 }, (_, depth) => 1e6 + depth);
    const head: Prefix = { hashes: hashes.slice(0, 8), tokensPerBlock: TOKENS };
    let next = 1e6 + 16;
    let largest = 0;
    for (let i = 0; i < 100_000; i++) {
      for (let depth = 8; depth < 16; depth++) hashes[depth] = next++;
      const prefix = { hashes: [...hashes], tokensPerBlock: TOKENS };
      place.mirror.leave(place.mirror.enter(prefix, 16 * TOKENS, i), 0, true, i);
      place.mirror.trim(0);
      largest = Math.max(largest, place.mirror.size);
    }
    expect(largest).toBe(capacityBlocks);
    expect(place.mirror.matchedTokens(head)).toBe(8 * TOKENS);
  });

  it("is what plain lists would make of the same events", () => {
    const path = fc.stringMatching(/^[ab]{0,10}$/);
    const event = fc.oneof(
      { weight: 6, arbitrary: fc.record({ enter: path, tokensPerBlock: fc.constantFrom(20, 64), tail: fc.nat(90) }) },
      { weight: 6, arbitrary: fc.record({ leave: fc.nat(), generated: fc.nat(200), isComputed: fc.boolean() }) },
      { weight: 3, arbitrary: fc.record({ trim: fc.nat(1200) }) },
      { weight: 1, arbitrary: fc.record({ resize: fc.integer({ min: 200, max: 1500 }) }) },
      { weight: 1, arbitrary: fc.constant({ clear: true }) },
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80 }), path, (events, asked) => {
        const mirror = new KvMirror(1000, new ReuseOdds());
        const model = new ListMirror(1000);
        const stays: [Stay, ListStay][] = [];
        events.forEach((happened, nowMs) => {
          if ("enter" in happened) {
            const prefix = chain(happened.enter, happened.tokensPerBlock);
            const promptTokens = happened.enter.length * happened.tokensPerBlock + happened.tail;
            stays.push([mirror.enter(prefix, promptTokens, nowMs), model.enter(prefix, promptTokens)]);
          } else if ("leave" in happened) {
            const [[stay, listed] = []] = stays.splice(happened.leave % Math.max(1, stays.length), 1);
            if (stay === undefined || listed === undefined) return;
            mirror.leave(stay, happened.generated, happened.isComputed, nowMs);
            model.leave(listed, happened.generated, happened.isComputed);
          } else if ("trim" in happened) {
            mirror.trim(happened.trim);
            model.trim(happened.trim);
          } else if ("resize" in happened) {
            mirror.resize(happened.resize);
            model.capacityTokens = happened.resize;
          } else {
            mirror.clear();
            model.clear();
          }
          expect(mirror).toMatchObject({
            size: model.size,
            evictableTokens: model.evictableTokens,
            sharedTokens: model.sharedTokens,
          });
        });
        expect(mirror.matchedTokens(chain(asked))).toBe(TOKENS * model.matchedBlocks(chain(asked)));
        const visited: number[] = [];
        mirror.visitEvicted(1e9, 0, 100, (blockTokens) => visited.push(blockTokens));
        expect(visited).toEqual(model.idle.filter(({ hash }) => hash !== undefined).map(({ tokens }) => tokens));
      }),
      { numRuns: 500 },
    );
  });

  it("is the same however many blocks it has had to make room for", () => {
    // More blocks at once than any table starts with.
    const hashes = Array.from({ length: 3000 }, (_, depth) => 5e6 + depth);
    const mirror = new KvMirror(undefined, new ReuseOdds());
    const prefix = { hashes, tokensPerBlock: 32 };
    const stays = [mirror.enter(prefix, 96_000, 0), mirror.enter(prefix, 96_000, 0)];
    expect(mirror.sharedTokens).toBe(96_000);
    for (const stay of stays) mirror.leave(stay, 0, true, 0);
    expect([mirror.sharedTokens, mirror.evictableTokens]).toEqual([0, 96_000]);
  });
});
