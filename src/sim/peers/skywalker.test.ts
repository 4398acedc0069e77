import { describe, expect, it } from "vitest";
import { candidate, candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, createPeer, idChosenBy, routeTo } from "../../../test/support/peer.ts";

describe("skywalker", () => {
  it.each([
    { requests: 8, running: 8, waiting: 0, hasRoom: true, why: "all run" },
    { requests: 8, running: 7, waiting: 1, hasRoom: false, why: "one waits" },
    { requests: 8, running: 7, waiting: 0, hasRoom: false, why: "one is on its way" },
    { requests: 0, running: 3, waiting: 1, hasRoom: false, why: "somebody else's waits" },
  ])("with $requests sent, $running running, $waiting waiting has room: $hasRoom ($why)", (state) => {
    const endpoint = candidate({
      id: "a",
      account: { requests: state.requests },
      signals: { runningRequests: state.running, waitingRequests: state.waiting },
    });
    expect(createPeer("skywalker").hasRoom?.(blocks(1), endpoint, [endpoint])).toBe(state.hasRoom);
  });

  it.each([
    { waiting: 0, hasRoom: true },
    { waiting: 1, hasRoom: false },
  ])("goes by first tokens where the engine says nothing: $waiting without one", ({ waiting, hasRoom }) => {
    const endpoint = candidate({ id: "a", account: { requests: 4, waitingRequests: waiting } });
    expect(createPeer("skywalker").hasRoom?.(blocks(1), endpoint, [endpoint])).toBe(hasRoom);
  });

  it("prefers the longest match, then the fewest requests", () => {
    const peer = createPeer("skywalker");
    const fleet = candidatesOf(
      { id: "a", account: { requests: 9 } },
      { id: "b", account: { requests: 5 } },
      { id: "c", account: { requests: 1 } },
    );
    routeTo(peer, "a", blocks(1, 2, 3), fleet);
    routeTo(peer, "b", blocks(1, 2), fleet);
    expect(idChosenBy(peer, blocks(1, 2, 3), fleet)).toBe("a");
    expect(idChosenBy(peer, blocks(1, 2, 9), fleet)).toBe("b");
    expect(idChosenBy(peer, blocks(9), fleet)).toBe("c");
  });
});
