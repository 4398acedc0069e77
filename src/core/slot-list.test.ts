import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SlotList } from "./slot-list.ts";

describe("SlotList", () => {
  it("holds exactly the items that were added and not removed", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { maxLength: 200 }), (picks) => {
        const items = Array.from({ length: 10 }, () => ({ slot: -1 }));
        const list = new SlotList<{ slot: number }>();
        const held = new Set<object>();
        for (const pick of picks) {
          const item = items[pick] as { slot: number };
          if (held.delete(item)) list.remove(item);
          else {
            held.add(item);
            list.add(item);
          }
          expect(list.size).toBe(held.size);
          expect(new Set(list.items())).toEqual(held);
        }
      }),
    );
  });

  it("ignores the removal of an item that it does not hold", () => {
    const list = new SlotList<{ slot: number }>();
    const kept = { slot: -1 };
    list.add(kept);
    list.remove({ slot: -1 });
    expect(list.items()).toEqual([kept]);
  });

  it("may change while its items are gone through", () => {
    const list = new SlotList<{ slot: number }>();
    for (let i = 0; i < 5; i++) list.add({ slot: -1 });
    for (const item of list.items()) list.remove(item);
    expect(list.size).toBe(0);
  });
});
