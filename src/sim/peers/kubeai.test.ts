import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { times } from "../../../test/support/fleet.ts";
import { blocks, chosenBy, createPeer, idChosenBy } from "../../../test/support/peer.ts";

const fleet = (a: number, b: number, c: number, d: number) =>
  candidatesOf(
    { id: "a", account: { requests: a } },
    { id: "b", account: { requests: b } },
    { id: "c", account: { requests: c } },
    { id: "d", account: { requests: d } },
  );

describe("kubeai_prefix_hash", () => {
  it("sends equal heads to one endpoint and different heads to all", () => {
    const peer = createPeer("kubeai_prefix_hash");
    const same = times(20, (index) => idChosenBy(peer, blocks(1, 100 + index), fleet(1, 1, 1, 1)));
    expect(new Set(same).size).toBe(1);
    const other = times(100, (index) => idChosenBy(peer, blocks(100 + index), fleet(1, 1, 1, 1)));
    expect(new Set(other).size).toBe(4);
  });

  it("bounds loads to 1.25 (total + 1) / endpoints", () => {
    // Bound: 1.25 x 16 / 4 = 5.
    const { considered } = chosenBy(createPeer("kubeai_prefix_hash"), blocks(1), fleet(5, 6, 4, 0));
    expect(considered.map(({ score }) => score)).toEqual([1, 1.2, 0.8, 0]);
  });

  it("takes the next on the ring within the bound", () => {
    const peer = createPeer("kubeai_prefix_hash");
    const heads = times(200, (index) => blocks(index));
    for (const head of heads) {
      const own = idChosenBy(peer, head, fleet(0, 0, 0, 0));
      const chosen = idChosenBy(peer, head, fleet(6, 6, 2, 1));
      if (own === "c" || own === "d") expect(chosen).toBe(own);
      else expect(["c", "d"]).toContain(chosen);
    }
  });

  it("bounds loads in proportion to speed", () => {
    const peer = createPeer("kubeai_prefix_hash", { speeds: { a: 5 } });
    // Bound of a: 1.25 x 16 x 5/8 = 12.5; of the others 2.5.
    const { considered } = chosenBy(peer, blocks(1), fleet(10, 2, 2, 1));
    expect(considered.map(({ score }) => score)).toEqual([0.8, 0.8, 0.8, 0.4]);
  });
});
