import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BlockTable } from "./block-table.ts";

describe("BlockTable", () => {
  it("keeps the first block of a hash", () => {
    const table = new BlockTable(4);
    expect(table.add(7, 0)).toBe(true);
    expect(table.add(7, 1)).toBe(false);
    expect([table.get(7), table.get(8)]).toEqual([0, -1]);
  });

  it("tells hashes apart that differ in one half of their bits only", () => {
    const table = new BlockTable(3);
    const hashes = [5, 5 + 2 ** 32, 5 + 2 ** 52];
    for (const [block, hash] of hashes.entries()) table.add(hash, block);
    expect(hashes.map((hash) => table.get(hash))).toEqual([0, 1, 2]);
  });

  it("answers as a map does, whatever is added and deleted in whatever order", () => {
    const hash = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.maxSafeNat(), fc.constantFrom(-1, 0.5, -(2 ** 40)));
    fc.assert(
      fc.property(fc.array(fc.record({ hash, isAdded: fc.boolean() }), { maxLength: 200 }), (steps) => {
        const blocks = 16;
        const table = new BlockTable(blocks);
        const map = new Map<number, number>();
        for (const [step, { hash: one, isAdded }] of steps.entries()) {
          if (!isAdded) {
            table.delete(one);
            map.delete(one);
          } else if (map.has(one)) {
            expect(table.add(one, step)).toBe(false);
          } else if (map.size < blocks) {
            expect(table.add(one, step)).toBe(true);
            map.set(one, step);
          }
          for (const { hash: asked } of steps) expect(table.get(asked)).toBe(map.get(asked) ?? -1);
        }
      }),
      { seed: 5 },
    );
  });
});
