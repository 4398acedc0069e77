import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, chosenBy, createPeer, idChosenBy, routeTo } from "../../../test/support/peer.ts";

const fleet = (a: { pending: number; requests: number }, b: { pending: number; requests: number }) =>
  candidatesOf(
    { id: "a", account: { waitingPrefillTokens: a.pending, requests: a.requests } },
    { id: "b", account: { waitingPrefillTokens: b.pending, requests: b.requests } },
  );

describe("lmetric", () => {
  it.each([
    // a holds two of the four blocks: 200 tokens to compute there, 400 at b.
    { a: { pending: 0, requests: 3 }, b: { pending: 0, requests: 1 }, scores: [800, 800], chosen: undefined },
    { a: { pending: 0, requests: 2 }, b: { pending: 0, requests: 1 }, scores: [600, 800], chosen: "a" },
    { a: { pending: 300, requests: 2 }, b: { pending: 0, requests: 1 }, scores: [1500, 800], chosen: "b" },
  ])("multiplies prefill tokens by the batch with the request in it: $scores", ({ a, b, scores, chosen }) => {
    const peer = createPeer("lmetric");
    routeTo(peer, "a", blocks(1, 2), fleet(a, b));
    const choice = chosenBy(peer, blocks(1, 2, 3, 4), fleet(a, b));
    expect(choice.considered.map(({ score }) => score)).toEqual(scores);
    if (chosen !== undefined) expect(choice.chosen.endpoint.id).toBe(chosen);
  });

  it("tells idle endpoints apart by their caches", () => {
    const idle = { pending: 0, requests: 0 };
    const peer = createPeer("lmetric");
    routeTo(peer, "b", blocks(1), fleet(idle, idle));
    expect(idChosenBy(peer, blocks(1, 2), fleet(idle, idle))).toBe("b");
  });

  it("still sees the batch when the whole prompt is cached", () => {
    const peer = createPeer("lmetric");
    const busy = fleet({ pending: 0, requests: 5 }, { pending: 0, requests: 4 });
    for (const id of ["a", "b"]) routeTo(peer, id, blocks(1), busy);
    expect(chosenBy(peer, blocks(1), busy).considered.map(({ score }) => score)).toEqual([6, 5]);
  });
});
