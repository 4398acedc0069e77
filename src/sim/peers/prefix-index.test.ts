import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Prefix } from "../../core/index.ts";
import { PrefixIndex } from "./prefix-index.ts";

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

describe("PrefixIndex", () => {
  it("matches what was sent, from the start up to the first difference", () => {
    const index = new PrefixIndex(64_000);
    index.insert(chain("abcd"));
    expect(index.matchedTokens(chain("abcd"))).toBe(4 * TOKENS);
    expect(index.matchedTokens(chain("abxd"))).toBe(2 * TOKENS);
    expect(index.matchedTokens(chain("abcdefgh"))).toBe(4 * TOKENS);
    expect(index.matchedTokens(chain("xbcd"))).toBe(0);
  });

  it("counts a match in tokens of the prompt that asks, whole ones", () => {
    const index = new PrefixIndex(64_000);
    index.insert(chain("abc"));
    expect(index.matchedTokens(chain("abc", 50.5))).toBe(151);
  });

  it("forgets the deepest blocks of the prompt unused for longest", () => {
    const index = new PrefixIndex(6 * TOKENS);
    index.insert(chain("abc"));
    index.insert(chain("xyz"));
    index.insert(chain("abc"));
    index.insert(chain("q"));
    expect(index.matchedTokens(chain("abc"))).toBe(3 * TOKENS);
    expect(index.matchedTokens(chain("xyz"))).toBe(2 * TOKENS);
  });

  it("keeps the start of a prompt that is longer than the cache", () => {
    const index = new PrefixIndex(3 * TOKENS);
    index.insert(chain("abcdefg"));
    expect(index.matchedTokens(chain("abcdefg"))).toBe(3 * TOKENS);
  });

  it("holds fewer blocks where a block stands for more tokens", () => {
    const index = new PrefixIndex(1000);
    index.insert(chain("abcdefghij", 200));
    expect([index.size, index.tokens]).toEqual([5, 1000]);
    index.clear();
    index.insert(chain("abcdefghij", 50));
    expect([index.size, index.tokens]).toEqual([10, 500]);
  });

  it("counts a block anew when its share of the prompt's tokens became better known", () => {
    const index = new PrefixIndex(1000);
    index.insert(chain("ab", 100));
    index.insert(chain("ab", 150));
    expect(index.tokens).toBe(300);
  });

  it("stays bounded when the token count of a prompt is nonsense", () => {
    const index = new PrefixIndex(1600);
    index.insert(chain("abcdefghij".repeat(30), 0));
    expect(index.size).toBeLessThanOrEqual(100);
  });

  it("forgets what no longer fits when the cache turns out smaller, and nothing when larger", () => {
    const index = new PrefixIndex(undefined);
    index.insert(chain("abcdef"));
    index.resize(4 * TOKENS);
    expect(index.matchedTokens(chain("abcdef"))).toBe(4 * TOKENS);
    index.resize(undefined);
    expect(index.matchedTokens(chain("abcdef"))).toBe(4 * TOKENS);
  });

  it("shows what would go first to make room, and keeps it", () => {
    const index = new PrefixIndex(6 * TOKENS);
    index.insert(chain("abc"));
    index.insert(chain("xyz"));
    const seen: number[] = [];
    index.visitOldest(TOKENS + 1, (hash, tokens) => seen.push(hash, tokens));
    const [, b, c] = chain("abc").hashes;
    expect(seen).toEqual([c, TOKENS, b, TOKENS]);
    expect(index.matchedTokens(chain("abc"))).toBe(3 * TOKENS);
  });

  it("is empty after the engine dropped its cache", () => {
    const index = new PrefixIndex(64_000);
    index.insert(chain("abc"));
    index.clear();
    expect([index.size, index.tokens, index.matchedTokens(chain("abc"))]).toEqual([0, 0, 0]);
  });

  it("matches as a scan from the start would, and holds no more than it may, whatever happened before", () => {
    const path = fc.stringMatching(/^[ab]{1,12}$/);
    const event = fc.oneof(
      { weight: 8, arbitrary: fc.record({ insert: path, tokensPerBlock: fc.constantFrom(20, 64, 150) }) },
      { weight: 1, arbitrary: fc.record({ resize: fc.integer({ min: 20, max: 1500 }) }) },
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), path, (events, asked) => {
        const index = new PrefixIndex(800);
        let capacity = 800;
        for (const happened of events) {
          if ("insert" in happened) index.insert(chain(happened.insert, happened.tokensPerBlock));
          else {
            capacity = happened.resize;
            index.resize(capacity);
          }
          expect(index.tokens).toBeLessThanOrEqual(capacity);
        }
        let held = 0;
        while (held < asked.length && index.matchedTokens(oneBlock(asked, held)) > 0) held++;
        expect(index.matchedTokens(chain(asked))).toBe(held * TOKENS);
      }),
      { numRuns: 500 },
    );
  });

  it("stays within its bound over a million prompts of their own under one head, which stays known", () => {
    const capacityBlocks = 10_000;
    const index = new PrefixIndex(capacityBlocks * TOKENS);
    // 2 kB of head and 2 kB of their own: 8 blocks each.
    const hashes = Array.from({ length: 16 }, (_, depth) => depth);
    const head: Prefix = { hashes: hashes.slice(0, 8), tokensPerBlock: TOKENS };
    let next = 16;
    let largest = 0;
    for (let i = 0; i < 1_000_000; i++) {
      for (let depth = 8; depth < 16; depth++) hashes[depth] = next++;
      index.insert({ hashes, tokensPerBlock: TOKENS });
      if (index.size > largest) largest = index.size;
    }
    expect(largest).toBe(capacityBlocks);
    expect(index.matchedTokens(head)).toBe(8 * TOKENS);
    expect(index.matchedTokens({ hashes, tokensPerBlock: TOKENS })).toBe(16 * TOKENS);
  });
});

/** The block at `depth` alone: a chain of one, found if and only if that block is held. */
function oneBlock(path: string, depth: number): Prefix {
  return { hashes: [chain(path).hashes[depth] as number], tokensPerBlock: TOKENS };
}
