import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, createPeer, idChosenBy, routeTo } from "../../../test/support/peer.ts";

const fleet = (a: number, b: number, c: number) =>
  candidatesOf(
    { id: "a", account: { requests: a } },
    { id: "b", account: { requests: b } },
    { id: "c", account: { requests: c } },
  );

describe("aibrix_prefix_cache", () => {
  it.each([
    { loads: [3, 3, 2], asked: [1, 2, 3], chosen: "a", why: "longest match" },
    { loads: [2, 2, 3], asked: [7], chosen: undefined, why: "no match: any of the least loaded" },
    { loads: [9, 1, 0], asked: [1, 2, 3], chosen: "c", why: "9 apart is imbalanced" },
    // Mean 8/3, deviation 3.77: a is above 6.4.
    { loads: [8, 0, 0], asked: [1, 2, 3], chosen: "b", why: "the best holder is busy, the next is not" },
    { loads: [8, 8, 0], asked: [1, 2, 3], chosen: "a", why: "busy, but within a deviation of the mean" },
  ])("with $loads requests sends $asked to $chosen: $why", ({ loads, asked, chosen }) => {
    const peer = createPeer("aibrix_prefix_cache");
    const [a = 0, b = 0, c = 0] = loads;
    routeTo(peer, "a", blocks(1, 2), fleet(0, 0, 0));
    routeTo(peer, "b", blocks(1), fleet(0, 0, 0));
    const id = idChosenBy(peer, blocks(...asked), fleet(a, b, c));
    if (chosen === undefined) expect(id).not.toBe("c");
    else expect(id).toBe(chosen);
  });

  it("breaks equal matches by requests", () => {
    const peer = createPeer("aibrix_prefix_cache");
    for (const id of ["a", "b"]) routeTo(peer, id, blocks(1, 2), fleet(0, 0, 0));
    expect(idChosenBy(peer, blocks(1, 2), fleet(3, 2, 1))).toBe("b");
  });
});
