import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, chosenBy, createPeer, idChosenBy, routeTo } from "../../../test/support/peer.ts";

const fleet = (a: number, b: number) =>
  candidatesOf({ id: "a", account: { requests: a } }, { id: "b", account: { requests: b } });

describe("sglang_cache_aware", () => {
  it.each([
    { policy: "sglang_cache_aware", a: 0, why: "balanced", chosen: "a" },
    { policy: "sglang_cache_aware", a: 32, why: "32 apart is not more than 32", chosen: "a" },
    { policy: "sglang_cache_aware", a: 33, why: "33 apart", chosen: "b" },
    { policy: "sglang_cache_aware_cli", a: 33, why: "the command line allows 64", chosen: "a" },
    { policy: "sglang_cache_aware_cli", a: 65, why: "65 apart", chosen: "b" },
  ])("$policy follows a match at $a requests against none to $chosen: $why", ({ policy, a, chosen }) => {
    const peer = createPeer(policy);
    routeTo(peer, "a", blocks(1, 2, 3, 4), fleet(0, 0));
    expect(idChosenBy(peer, blocks(1, 2, 3, 4), fleet(a, 0))).toBe(chosen);
  });

  it("needs the longest queue to be above the ratio too", () => {
    const peer = createPeer("sglang_cache_aware_cli");
    routeTo(peer, "a", blocks(1, 2), fleet(0, 0));
    expect(idChosenBy(peer, blocks(1, 2), fleet(195, 130))).toBe("a");
    expect(idChosenBy(peer, blocks(1, 2), fleet(196, 130))).toBe("b");
  });

  it.each([
    { policy: "sglang_cache_aware", asked: [1, 8, 9], chosen: "b" },
    { policy: "sglang_cache_aware", asked: [1, 8], chosen: "b" },
    { policy: "sglang_cache_aware", asked: [1, 2, 8], chosen: "a" },
    { policy: "sglang_cache_aware_cli", asked: [1, 8, 9], chosen: "a" },
    { policy: "sglang_cache_aware_cli", asked: [1, 7, 8, 9], chosen: "b" },
  ])(
    "$policy sends $asked to $chosen: below the match threshold the smallest tree wins",
    ({ policy, asked, chosen }) => {
      const peer = createPeer(policy);
      routeTo(peer, "a", blocks(1, 2, 3), fleet(0, 0));
      routeTo(peer, "b", blocks(5), fleet(0, 0));
      expect(idChosenBy(peer, blocks(...asked), fleet(0, 0))).toBe(chosen);
    },
  );

  it("scores by what decided", () => {
    const peer = createPeer("sglang_cache_aware");
    routeTo(peer, "a", blocks(1, 2, 3), fleet(0, 0));
    const scores = (asked: number[], a: number) =>
      chosenBy(peer, blocks(...asked), fleet(a, 1)).considered.map(({ score }) => score);
    expect(scores([1, 2, 3, 9], 1)).toEqual([0.75, 0]);
    expect(scores([7], 1)).toEqual([300, 0]);
    expect(scores([7], 50)).toEqual([50, 1]);
  });

  it("counts requests by speed where it is told one", () => {
    const peer = createPeer("sglang_cache_aware", { speeds: { a: 4 } });
    routeTo(peer, "b", blocks(1), fleet(0, 0));
    expect(idChosenBy(peer, blocks(1), fleet(160, 20))).toBe("b");
    expect(idChosenBy(peer, blocks(1), fleet(0, 40))).toBe("a");
  });
});
