import { describe, expect, it } from "vitest";
import type { Peer } from "./peer.ts";
import { failureLines, sideBySide } from "./side-by-side.ts";

const peer = (name: string): Peer => ({
  name,
  settings: "",
  install: async () => "1",
  prepare: async () => ({ file: name, args: [] }),
});

describe("sideBySide", () => {
  it("begins each round with another peer, and lets all leave", async () => {
    const order: string[] = [];
    const left: string[] = [];
    const lanes = await sideBySide({ progress: () => {} }, [peer("a"), peer("b")], {
      rounds: 2,
      enter: async ({ name }) => name,
      sample: async (name, round) => {
        order.push(`${name}${round}`);
        return round;
      },
      leave: async (name) => void left.push(name),
    });
    expect(order).toEqual(["a0", "b0", "b1", "a1"]);
    expect(lanes.map(({ samples }) => samples)).toEqual([
      [0, 1],
      [0, 1],
    ]);
    expect(left).toEqual(["a", "b"]);
  });

  it("goes on without a peer that failed, and keeps why", async () => {
    const left: string[] = [];
    const lanes = await sideBySide({ progress: () => {} }, [peer("a"), peer("b"), peer("c")], {
      rounds: 2,
      enter: async ({ name }) => {
        if (name === "a") throw new Error("cannot start");
        return name;
      },
      sample: async (name, round) => {
        if (name === "b" && round === 1) throw new Error("broke");
        return round;
      },
      leave: async (name) => void left.push(name),
    });
    expect(lanes.map(({ samples }) => samples)).toEqual([[], [0], [0, 1]]);
    expect(failureLines(lanes)).toEqual(["a FAILED: cannot start", "b FAILED: broke"]);
    expect(left).toEqual(["b", "c"]);
  });
});
