import fc from "fast-check";
import { expect, it } from "vitest";
import { MinHeap } from "./min-heap.ts";

interface Item {
  readonly rank: number;
}

it("has the first at hand, whatever was added and taken out", () => {
  const step = fc.record({
    rank: fc.integer({ min: 0, max: 50 }),
    kind: fc.constantFrom("push", "push", "pop", "remove"),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const heap = new MinHeap<Item>((a, b) => a.rank < b.rank);
      const items: Item[] = [];
      for (const { rank, kind } of steps) {
        const chosen = items[rank % Math.max(1, items.length)];
        if (kind === "push") {
          const item = { rank };
          heap.push(item);
          items.push(item);
        } else if (kind === "pop") {
          const first = heap.pop();
          expect(first?.rank).toBe(items.length === 0 ? undefined : Math.min(...items.map((item) => item.rank)));
          if (first !== undefined) items.splice(items.indexOf(first), 1);
        } else if (chosen !== undefined) {
          heap.remove(chosen);
          items.splice(items.indexOf(chosen), 1);
        }
      }
      const left = Array.from({ length: items.length }, () => heap.pop()?.rank);
      expect(left).toEqual(items.map((item) => item.rank).sort((a, b) => a - b));
      expect(heap.pop()).toBeUndefined();
    }),
    { seed: 3 },
  );
});

it("leaves the others where they are when asked to remove a stranger", () => {
  const heap = new MinHeap<Item>((a, b) => a.rank < b.rank);
  const item = { rank: 1 };
  heap.push(item);
  heap.remove({ rank: 1 });
  expect(heap.peek()).toBe(item);
});
