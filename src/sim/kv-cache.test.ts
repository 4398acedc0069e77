import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KvCache } from "./kv-cache.ts";

/** Allocates, indexes and releases a chain, so that it stays in the cache unreferenced. */
function leaveCached(cache: KvCache, hashes: readonly number[]): void {
  const blocks: number[] = [];
  expect(cache.allocate(hashes.length, blocks)).toBe(true);
  hashes.forEach((hash, depth) => {
    cache.index(blocks[depth] as number, hash);
  });
  cache.release(blocks);
}

describe("KvCache", () => {
  it("counts whole blocks only", () => {
    const cache = new KvCache(100, 16);
    expect([cache.totalBlocks, cache.blocksFor(1), cache.blocksFor(16), cache.blocksFor(17)]).toEqual([6, 1, 1, 2]);
    expect(new KvCache(0, 16).usedRatio).toBe(0);
  });

  it("allocates until it is full, and then changes nothing", () => {
    const cache = new KvCache(64, 16);
    const blocks: number[] = [];
    expect(cache.allocate(3, blocks)).toBe(true);
    expect(cache.usedRatio).toBe(0.75);
    expect(cache.allocate(2, blocks)).toBe(false);
    expect([cache.freeBlocks, blocks.length]).toEqual([1, 3]);
    cache.release(blocks);
    expect([cache.freeBlocks, blocks.length]).toEqual([4, 0]);
  });

  it("finds the leading run of a chain, up to a limit", () => {
    const cache = new KvCache(160, 16);
    leaveCached(cache, [1, 2, 3]);
    expect(cache.match([1, 2, 3, 4], 10)).toBe(3);
    expect(cache.match([1, 2, 3, 4], 2)).toBe(2);
    expect(cache.match([1, 9, 3], 10)).toBe(1);
    expect(cache.match([2, 3], 10)).toBe(2);
    expect(cache.match([], 10)).toBe(0);
  });

  it("evicts the least recently released chain first, and its deep blocks before its shallow ones", () => {
    const cache = new KvCache(6 * 16, 16);
    leaveCached(cache, [1, 2, 3]);
    leaveCached(cache, [11, 12, 13]);
    cache.allocate(2, []);
    expect(cache.match([1, 2, 3], 3)).toBe(1);
    expect(cache.match([11, 12, 13], 3)).toBe(3);
    cache.allocate(2, []);
    expect(cache.match([1, 2, 3], 3)).toBe(0);
    expect(cache.match([11, 12, 13], 3)).toBe(2);
  });

  it("makes a chain recent again when it is used", () => {
    const cache = new KvCache(4 * 16, 16);
    leaveCached(cache, [1, 2]);
    leaveCached(cache, [11, 12]);
    const blocks: number[] = [];
    expect(cache.enter([1, 2], 2, 2, blocks)).toBe(2);
    cache.release(blocks);
    cache.allocate(2, []);
    expect(cache.match([1, 2], 2)).toBe(2);
    expect(cache.match([11, 12], 2)).toBe(0);
  });

  it("never evicts what is referred to, and frees a shared block with its last user", () => {
    const cache = new KvCache(3 * 16, 16);
    leaveCached(cache, [1]);
    const first: number[] = [];
    const second: number[] = [];
    cache.enter([1], 1, 1, first);
    cache.enter([1], 1, 1, second);
    expect(first).toEqual(second);
    expect(cache.allocate(3, [])).toBe(false);
    cache.release(first);
    expect(cache.freeBlocks).toBe(2);
    cache.release(second);
    expect(cache.freeBlocks).toBe(3);
  });

  it("lets a prompt in only if all of it fits, counting hits that would leave the free blocks", () => {
    const cache = new KvCache(4 * 16, 16);
    leaveCached(cache, [1, 2]);
    cache.allocate(1, []);
    const blocks: number[] = [];
    expect(cache.enter([1, 2], 2, 4, blocks)).toBeUndefined();
    expect(cache.enter([8, 9], 2, 4, blocks)).toBeUndefined();
    expect([cache.freeBlocks, blocks.length]).toEqual([3, 0]);
    expect(cache.enter([1, 2], 2, 3, blocks)).toBe(2);
  });

  it("keeps a second copy of the same content private", () => {
    const cache = new KvCache(2 * 16, 16);
    const blocks: number[] = [];
    cache.allocate(2, blocks);
    const copy = blocks[1] as number;
    cache.index(blocks[0] as number, 7);
    cache.index(copy, 7);
    cache.release([copy]);
    cache.allocate(1, []);
    expect(cache.match([7], 1)).toBe(1);
  });

  it("refuses a block that is given back twice", () => {
    const cache = new KvCache(16, 16);
    const blocks: number[] = [];
    cache.allocate(1, blocks);
    const copy = [...blocks];
    cache.release(blocks);
    expect(() => cache.release(copy)).toThrow("twice");
  });

  it("has all blocks free again whatever chains were taken and released", () => {
    const chain = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(fc.record({ chain, keep: fc.boolean() }), { maxLength: 60 }), (steps) => {
        const cache = new KvCache(16 * 16, 16);
        const held: number[][] = [];
        for (const { chain: path, keep } of steps) {
          const hashes = path.map((_, depth) => Number(path.slice(0, depth + 1).join("")) + 10 ** (depth + 2));
          const blocks: number[] = [];
          const hits = cache.enter(hashes, hashes.length, hashes.length, blocks);
          if (hits === undefined) {
            held.splice(0, 1).forEach((oldest) => {
              cache.release(oldest);
            });
            continue;
          }
          expect(cache.allocate(hashes.length - hits, blocks)).toBe(true);
          hashes.forEach((hash, depth) => {
            cache.index(blocks[depth] as number, hash);
          });
          expect(cache.match(hashes, hashes.length)).toBe(hashes.length);
          if (keep) held.push(blocks);
          else cache.release(blocks);
        }
        expect(cache.freeBlocks).toBe(cache.totalBlocks - new Set(held.flat()).size);
        for (const blocks of held) cache.release(blocks);
        expect(cache.freeBlocks).toBe(cache.totalBlocks);
      }),
    );
  });
});
