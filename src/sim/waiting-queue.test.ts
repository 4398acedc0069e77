import { describe, expect, it } from "vitest";
import { WaitingQueue } from "./waiting-queue.ts";

interface Item {
  readonly name: string;
  isAborted: boolean;
}

function item(name: string): Item {
  return { name, isAborted: false };
}

function drain(queue: WaitingQueue<Item>): string[] {
  const names: string[] = [];
  for (let next = queue.peek(); next !== undefined; next = queue.peek()) {
    names.push(next.name);
    queue.shift();
  }
  return names;
}

describe("WaitingQueue", () => {
  it("serves in order of arrival", () => {
    const queue = new WaitingQueue<Item>();
    const names = Array.from({ length: 500 }, (_, i) => `r${i}`);
    for (const name of names) queue.push(item(name));
    expect(drain(queue)).toEqual(names);
    expect(queue.peek()).toBeUndefined();
  });

  it("serves what was put back first, the last put back before the others", () => {
    const queue = new WaitingQueue<Item>();
    queue.push(item("new"));
    queue.putBack(item("last of the batch"));
    queue.putBack(item("one before"));
    expect(drain(queue)).toEqual(["one before", "last of the batch", "new"]);
  });

  it("skips what was aborted, wherever it waits", () => {
    const queue = new WaitingQueue<Item>();
    const items = ["a", "b", "c", "back"].map(item);
    for (const waiting of items.slice(0, 3)) queue.push(waiting);
    queue.putBack(items[3] as Item);
    for (const index of [0, 2, 3]) (items[index] as Item).isAborted = true;
    expect(drain(queue)).toEqual(["b"]);
  });
});
