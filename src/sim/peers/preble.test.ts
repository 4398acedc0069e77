import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { times } from "../../../test/support/fleet.ts";
import { blocks, chosenBy, createPeer, idChosenBy, routeTo } from "../../../test/support/peer.ts";
import type { Policy, RequestProfile } from "../../core/index.ts";

const fleet = candidatesOf({ id: "a", kvCapacityTokens: 1000 }, { id: "b", kvCapacityTokens: 1000 });

function sendTo(peer: Policy, id: string, request: RequestProfile, nowMs = 0): void {
  chosenBy(peer, request, fleet, nowMs);
  routeTo(peer, id, request, fleet);
}

const termsOf = (peer: Policy, request: RequestProfile, nowMs = 0) =>
  chosenBy(peer, request, fleet, nowMs).considered.map(({ terms }) => terms ?? {});

describe("preble_e2", () => {
  it.each([
    { asked: [1, 2, 9], chosen: "a", why: "two of three blocks are cached there" },
    { asked: [1, 2, 8, 9], chosen: "b", why: "half is not more than half, and b has less load" },
  ])("sends $asked to $chosen: $why", ({ asked, chosen }) => {
    const peer = createPeer("preble_e2");
    times(5, (index) => sendTo(peer, "b", blocks(50 + index, 60 + index)));
    times(6, () => sendTo(peer, "a", blocks(1, 2)));
    expect(idChosenBy(peer, blocks(...asked), fleet)).toBe(chosen);
  });

  it("sends to the lightest when a holder has more than 1.5 of its load", () => {
    const peer = createPeer("preble_e2");
    times(4, (index) => sendTo(peer, "b", blocks(50 + index, 60 + index)));
    times(5, () => sendTo(peer, "a", blocks(1, 2)));
    expect(idChosenBy(peer, blocks(1, 2), fleet)).toBe("a");
    times(3, () => sendTo(peer, "a", blocks(1, 2)));
    expect(idChosenBy(peer, blocks(1, 2), fleet)).toBe("b");
  });

  it("forgets load after three minutes", () => {
    const peer = createPeer("preble_e2");
    sendTo(peer, "a", blocks(1), 1000);
    const loadAt = (nowMs: number) => termsOf(peer, blocks(9), nowMs)[0]?.loadMs;
    expect(loadAt(181_000)).toBeGreaterThan(45 * 7);
    expect(loadAt(181_001)).toBe(0);
  });

  it("prices what the prompt would push out by how often it is used", () => {
    const peer = createPeer("preble_e2");
    sendTo(peer, "a", blocks(1, 2, 3, 4, 5));
    sendTo(peer, "a", blocks(1, 2, 3, 4, 5));
    sendTo(peer, "b", blocks(21, 22, 23, 24, 25));
    sendTo(peer, "b", blocks(31, 32, 33, 34, 35));
    const [a, b] = termsOf(peer, blocks(91, 92, 93, 94, 95, 96));
    // Room at a for 5 of 6 blocks: the oldest, used by all there, goes. At b all 6 push others out, used by half.
    expect(a?.evictionMs).toBeCloseTo(100 * (0.0174 + 0.0033), 6);
    expect(b?.evictionMs).toBeCloseTo(6 * 100 * (0.0174 + 0.0033) * 0.5, 6);
    expect(termsOf(peer, blocks(91, 92, 93, 94, 95))[0]?.evictionMs).toBe(0);
  });
});
