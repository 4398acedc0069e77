import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FirstBlocks } from "./first-blocks.ts";

describe("FirstBlocks", () => {
  it("tells mirrors apart, and forgets what was removed", () => {
    const blocks = new FirstBlocks();
    const [a, b] = [blocks.take(), blocks.take()];
    blocks.add(7, a);
    blocks.add(7, a);
    expect([blocks.mayHold(7, a), blocks.mayHold(7, b), blocks.mayHold(8, a)]).toEqual([true, false, false]);
    blocks.remove(7, a);
    expect(blocks.mayHold(7, a)).toBe(true);
    blocks.remove(7, a);
    expect(blocks.mayHold(7, a)).toBe(false);
  });

  it("gives a column that came back to another mirror, empty", () => {
    const blocks = new FirstBlocks();
    const columns = Array.from({ length: 5 }, () => blocks.take());
    expect(new Set(columns).size).toBe(5);
    for (const column of columns) blocks.add(7, column);
    blocks.giveBack(columns[3] as number);
    const next = blocks.take();
    expect(next).toBe(columns[3]);
    expect(columns.map((column) => blocks.mayHold(7, column))).toEqual([true, true, true, false, true]);
  });

  it("never denies a block that is held, whoever else comes and goes", () => {
    // 52 bits, as the hashes of prompts have.
    const change = fc.record({ column: fc.nat(20), hash: fc.nat(5).map((high) => high * 2 ** 40 + 3) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const blocks = new FirstBlocks();
        const columns: number[] = [];
        const held = new Map<string, { hash: number; column: number }>();
        for (const { column: index, hash } of changes) {
          while (columns.length <= index) columns.push(blocks.take());
          const column = columns[index] as number;
          const key = `${hash} ${column}`;
          if (held.delete(key)) blocks.remove(hash, column);
          else {
            held.set(key, { hash, column });
            blocks.add(hash, column);
          }
          for (const each of held.values()) expect(blocks.mayHold(each.hash, each.column)).toBe(true);
        }
        for (const { hash, column } of held.values()) blocks.remove(hash, column);
        for (const column of columns) expect(blocks.mayHold(3, column)).toBe(false);
      }),
      { numRuns: 100 },
    );
  });
});
