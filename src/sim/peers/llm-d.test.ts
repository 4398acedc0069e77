import { describe, expect, it } from "vitest";
import { type CandidateFacts, candidate, candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, chosenBy, createPeer, idChosenBy, routeTo } from "../../../test/support/peer.ts";

/** As its engine says: waiting requests and KV usage. */
const saying = (id: string, waiting: number, kvUsedRatio: number): CandidateFacts => ({
  id,
  account: { requests: waiting },
  signals: { runningRequests: 0, waitingRequests: waiting, kvUsedRatio },
});

describe("llm_d weighted scorers", () => {
  it.each([
    // a: half of the prompt, 0.6 free, queue 0; b: none, 0.9 free, queue 1; c: none, 0.8 free, queue 0.5.
    { policy: "llm_d_2_1_1", scores: [1.6, 1.9, 1.3], chosen: "b" },
    { policy: "llm_d_2_4_1", scores: [3.4, 4.6, 3.7], chosen: "b" },
    { policy: "llm_d_4_4_1", scores: [4.4, 4.6, 3.7], chosen: "b" },
  ])("$policy sums prefix, free KV and min-max queue: $scores", ({ policy, scores, chosen }) => {
    const peer = createPeer(policy);
    const fleet = candidatesOf(saying("a", 4, 0.4), saying("b", 0, 0.1), saying("c", 2, 0.2));
    routeTo(peer, "a", blocks(1), fleet);
    const choice = chosenBy(peer, blocks(1, 2), fleet);
    for (const [index, { score }] of choice.considered.entries()) {
      expect(score).toBeCloseTo(scores[index] as number, 10);
    }
    expect(choice.chosen.endpoint.id).toBe(chosen);
  });

  it("follows the prefix where queues are equal and caches alike", () => {
    const peer = createPeer("llm_d_2_1_1");
    const fleet = candidatesOf(saying("a", 3, 0.5), saying("b", 3, 0.4));
    routeTo(peer, "a", blocks(1), fleet);
    expect(idChosenBy(peer, blocks(1), fleet)).toBe("a");
  });

  it("shortens the queue of a fast endpoint", () => {
    const fleet = candidatesOf(saying("a", 6, 0), saying("b", 3, 0));
    expect(idChosenBy(createPeer("llm_d_2_1_1"), blocks(1), fleet)).toBe("b");
    expect(idChosenBy(createPeer("llm_d_2_1_1", { speeds: { a: 4 } }), blocks(1), fleet)).toBe("a");
  });
});

describe("llm_d_flow_control", () => {
  it.each([
    { a: [0, 0.79], b: [0, 0.79], isOpen: true, why: "below both limits" },
    { a: [0, 0.8], b: [0, 0.8], isOpen: false, why: "KV usage at its limit" },
    { a: [5, 0], b: [5, 0], isOpen: false, why: "queues at their limit" },
    { a: [9, 0], b: [0, 0], isOpen: true, why: "the mean counts: 1.8 and 0" },
    { a: [10, 0], b: [0, 0.1], isOpen: false, why: "2 and 0.125" },
  ])("with waiting and KV usage $a and $b is open: $isOpen ($why)", ({ a, b, isOpen }) => {
    const pool = candidatesOf(saying("a", a[0] as number, a[1] as number), saying("b", b[0] as number, b[1] as number));
    const peer = createPeer("llm_d_flow_control");
    for (const each of pool) expect(peer.hasRoom?.(blocks(1), each, pool)).toBe(isOpen);
  });

  it("counts what was sent and has not reached the engine yet", () => {
    const hasRoomAfter = (requests: number) => {
      const sent = candidate({
        id: "a",
        account: { requests },
        signals: { runningRequests: 7, waitingRequests: 1, kvUsedRatio: 0 },
      });
      return createPeer("llm_d_flow_control").hasRoom?.(blocks(1), sent, [sent]);
    };
    expect([hasRoomAfter(11), hasRoomAfter(12)]).toEqual([true, false]);
  });

  it("keeps single endpoints above the limits out of the choice, unless all are", () => {
    const peer = createPeer("llm_d_flow_control");
    const fleet = candidatesOf(saying("a", 0, 0.9), saying("b", 2, 0.5));
    routeTo(peer, "a", blocks(1), fleet);
    expect(idChosenBy(peer, blocks(1), fleet)).toBe("b");
    expect(idChosenBy(peer, blocks(1), candidatesOf(saying("a", 0, 0.9), saying("b", 6, 0.5)))).toBe("a");
  });

  it("holds in order of arrival", () => {
    expect(createPeer("llm_d_flow_control").queueKey).toBeUndefined();
  });
});
