import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, chosenBy, createPeer, idChosenBy, peerNamed, routeTo } from "../../../test/support/peer.ts";

describe("dynamo", () => {
  // 160 tokens are 10 blocks. a: nothing cached, idle. b: all but the last token cached, 800 tokens of KV in use.
  it.each([
    { policy: "dynamo_1", scores: [20, 60.0625], chosen: "a" },
    { policy: "dynamo_16", scores: [170, 61], chosen: "b" },
    { policy: "dynamo_32", scores: [330, 62], chosen: "b" },
  ])("$policy weighs prefill blocks against KV blocks: $scores", ({ policy, scores, chosen }) => {
    const peer = createPeer(policy);
    const request = { ...blocks(1), promptTokens: 160, prefix: { hashes: [1], tokensPerBlock: 160 } };
    const fleet = candidatesOf({ id: "a" }, { id: "b", kvTokens: 800 });
    routeTo(peer, "b", request, fleet);
    const choice = chosenBy(peer, request, fleet);
    expect(choice.considered.map(({ score }) => score)).toEqual(scores);
    expect(choice.chosen.endpoint.id).toBe(chosen);
  });

  it("counts prefill that is still to be done", () => {
    const fleet = candidatesOf({ id: "a", account: { waitingPrefillTokens: 1600 } }, { id: "b", kvTokens: 800 });
    expect(idChosenBy(createPeer("dynamo_1"), blocks(1), fleet)).toBe("b");
  });

  it("divides the cost by the speed it is told", () => {
    const fleet = candidatesOf({ id: "a", kvTokens: 1600 }, { id: "b", kvTokens: 800 });
    expect(idChosenBy(createPeer("dynamo_1"), blocks(1), fleet)).toBe("b");
    expect(idChosenBy(createPeer("dynamo_1", { speeds: { a: 3 } }), blocks(1), fleet)).toBe("a");
  });
});

describe("dynamo's router queue", () => {
  it.each([
    { policy: "dynamo_queue_0_fcfs", a: 0, b: 9000, isOpen: true },
    { policy: "dynamo_queue_0_fcfs", a: 1, b: 1, isOpen: false },
    { policy: "dynamo_queue_0.25_fcfs", a: 2048, b: 9000, isOpen: true },
    { policy: "dynamo_queue_0.25_fcfs", a: 2049, b: 9000, isOpen: false },
    { policy: "dynamo_queue_1_shortest", a: 8193, b: 8192, isOpen: true },
    { policy: "dynamo_queue_1_shortest", a: 8193, b: 8193, isOpen: false },
    { policy: "dynamo_queue_4_shortest", a: 32_768, b: 99_999, isOpen: true },
  ])("$policy with $a and $b prefill tokens to do is open: $isOpen", ({ policy, a, b, isOpen }) => {
    const pool = candidatesOf(
      { id: "a", account: { waitingPrefillTokens: a } },
      { id: "b", account: { waitingPrefillTokens: b } },
    );
    const peer = createPeer(policy);
    for (const each of pool) expect(peer.hasRoom?.(blocks(1), each, pool)).toBe(isOpen);
  });

  it("knows the batch of each engine", () => {
    const pool = candidatesOf({ id: "a", account: { waitingPrefillTokens: 2049 } });
    const isOpen = (batchTokens: Record<string, number>) =>
      createPeer("dynamo_queue_1_fcfs", { batchTokens }).hasRoom?.(blocks(1), pool[0], pool);
    expect([isOpen({}), isOpen({ a: 2048 })]).toEqual([true, false]);
  });

  it("has both of its orders", () => {
    expect(createPeer("dynamo_queue_0_fcfs").queueKey).toBeUndefined();
    const { queueKey } = createPeer("dynamo_queue_0_shortest");
    expect([queueKey?.(blocks(1, 2), 0), queueKey?.(blocks(1), 900)]).toEqual([200, 100]);
    expect(peerNamed("dynamo_queue_0_fcfs")).toMatchObject({ class: "own_hold", whenFull: "hold" });
  });
});
