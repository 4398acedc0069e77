import { describe, expect, it } from "vitest";
import { LoopTurns } from "./loop-turns.ts";

/** Resolves in the next turn of the event loop. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

describe("LoopTurns", () => {
  it("gives each its own turn of the event loop, in the order in which they asked", async () => {
    const turns = new LoopTurns();
    const done: string[] = [];
    const work = (name: string) => turns.next().then(() => done.push(name));
    const all = Promise.all(["a", "b", "c"].map(work));
    expect(done).toEqual([]);
    const seen: string[] = [];
    for (let turn = 0; turn < 3; turn++) {
      await nextTurn();
      seen.push(done.join(""));
    }
    await all;
    expect(seen).toEqual(["a", "ab", "abc"]);
  });

  it("goes on giving turns after a time in which nobody asked, and to whoever asks in one", async () => {
    const turns = new LoopTurns();
    await turns.next();
    await nextTurn();
    let isAgain = false;
    await turns.next();
    const again = turns.next().then(() => {
      isAgain = true;
    });
    await Promise.resolve();
    expect(isAgain).toBe(false);
    await again;
    expect(isAgain).toBe(true);
  });
});
