import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HashSlots } from "./hash-slots.ts";

describe("HashSlots", () => {
  it("gives each hash a slot of its own and knows it by it", () => {
    const slots = new HashSlots();
    const given = [5, 5 + 2 ** 32, 2 ** 52 - 1, 0].map((hash) => [hash, slots.add(hash)] as const);
    expect(new Set(given.map(([, slot]) => slot)).size).toBe(4);
    for (const [hash, slot] of given) {
      expect(slots.slotOf(hash)).toBe(slot);
      expect(slots.hashAt(slot)).toBe(hash);
      expect(slot).toBeLessThan(slots.capacity);
    }
    expect(slots.slotOf(6)).toBe(-1);
  });

  it("uses slots again before it takes more room", () => {
    const slots = new HashSlots();
    const { capacity } = slots;
    for (let round = 0; round < 10; round++) {
      const given = Array.from({ length: capacity }, (_, i) => slots.add(round * capacity + i));
      for (const slot of given) slots.remove(slot);
    }
    expect([slots.size, slots.capacity]).toEqual([0, capacity]);
  });

  it("keeps every slot when it grows", () => {
    const slots = new HashSlots();
    const given = Array.from({ length: 5000 }, (_, i) => slots.add(i * 7919));
    expect(slots.size).toBe(5000);
    for (const [i, slot] of given.entries()) expect(slots.slotOf(i * 7919)).toBe(slot);
  });

  it("takes a guess for what it is", () => {
    const slots = new HashSlots();
    const [five, six] = [slots.add(5), slots.add(6)];
    for (const guess of [five, six, -1, slots.size, slots.capacity]) {
      expect([slots.slotNear(5, guess), slots.slotNear(6, guess), slots.slotNear(0, guess)]).toEqual([five, six, -1]);
    }
    slots.remove(five);
    expect(slots.slotNear(5, five)).toBe(-1);
    slots.clear();
    expect(slots.slotNear(6, six)).toBe(-1);
  });

  it.each([0, 1, 2, 3, 4, 7, 8, 9, 99, 100])("counts how many of a chain it holds from the start: %d", (held) => {
    const chain = Array.from({ length: 100 }, (_, i) => 1000 + i);
    const slots = new HashSlots();
    for (const hash of chain.slice(0, held)) slots.add(hash);
    expect(slots.leadOf(chain, 100)).toBe(held);
    expect(slots.leadOf(chain, 5)).toBe(Math.min(held, 5));
    expect(slots.leadOf([], 0)).toBe(0);
  });

  it("is empty and as roomy as before when cleared", () => {
    const slots = new HashSlots();
    slots.add(1);
    slots.clear();
    expect([slots.size, slots.slotOf(1)]).toEqual([0, -1]);
    slots.add(2);
    expect([slots.slotOf(1), slots.slotOf(2)]).toEqual([-1, 0]);
  });

  it("finds what a Map would, in whatever order hashes come and go, crowded into few buckets", () => {
    // The low 32 bits alone place a hash: all of these want the same three buckets.
    const hash = fc.tuple(fc.nat(2), fc.nat(40)).map(([bucket, high]) => bucket + high * 2 ** 32);
    fc.assert(
      fc.property(fc.array(hash, { maxLength: 300 }), (hashes) => {
        const slots = new HashSlots();
        const model = new Map<number, number>();
        for (const each of hashes) {
          const slot = model.get(each);
          if (slot === undefined) model.set(each, slots.add(each));
          else {
            slots.remove(slot);
            model.delete(each);
          }
        }
        expect(slots.size).toBe(model.size);
        for (const each of hashes) expect(slots.slotOf(each)).toBe(model.get(each) ?? -1);
      }),
      { numRuns: 300 },
    );
  });
});
