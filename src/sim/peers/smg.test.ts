import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { times } from "../../../test/support/fleet.ts";
import { blocks, chosenBy, createPeer, idChosenBy } from "../../../test/support/peer.ts";
import { requestProfile } from "../../core/index.ts";

const request = requestProfile({ promptTokens: 100 });

describe("smg_least_load", () => {
  it.each([
    { a: { queued: 2000, kv: 0 }, b: { queued: 1000, kv: 0 }, scores: [1, 0.5] },
    { a: { queued: 0, kv: 0.5 }, b: { queued: 400, kv: 0 }, scores: [0.15, 0.2] },
    { a: { queued: 0, kv: 0.75 }, b: { queued: 800, kv: 0 }, scores: [0.45, 0.4] },
  ])("is seconds of queue at 2,000 tokens/s plus 0.15 k/(1 - k): $scores", ({ a, b, scores }) => {
    const fleet = candidatesOf(
      { id: "a", account: { waitingPromptTokens: a.queued }, signals: { kvUsedRatio: a.kv } },
      { id: "b", account: { waitingPromptTokens: b.queued }, signals: { kvUsedRatio: b.kv } },
    );
    const choice = chosenBy(createPeer("smg_least_load"), request, fleet);
    for (const [index, { score }] of choice.considered.entries()) {
      expect(score).toBeCloseTo(scores[index] as number, 10);
    }
    expect(choice.chosen.endpoint.id).toBe((scores[0] as number) < (scores[1] as number) ? "a" : "b");
  });

  it("has a score for a full cache too", () => {
    const fleet = candidatesOf({ id: "a", signals: { kvUsedRatio: 1 } });
    expect(chosenBy(createPeer("smg_least_load"), request, fleet).considered[0]?.score).toBeCloseTo(149.85, 2);
  });
});

describe("smg_power_of_two", () => {
  it.each([
    { a: { kv: 0.2, requests: 9 }, b: { kv: 0.3, requests: 1 }, chosen: "a" },
    { a: { kv: 0.2, requests: 9 }, b: { kv: 0.2, requests: 1 }, chosen: "b" },
  ])("prefers less KV usage, then fewer requests: $chosen", ({ a, b, chosen }) => {
    const fleet = candidatesOf(
      { id: "a", account: { requests: a.requests }, signals: { kvUsedRatio: a.kv } },
      { id: "b", account: { requests: b.requests }, signals: { kvUsedRatio: b.kv } },
    );
    expect(idChosenBy(createPeer("smg_power_of_two"), request, fleet)).toBe(chosen);
  });

  it("looks at two of many", () => {
    const fleet = candidatesOf({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
    expect(chosenBy(createPeer("smg_power_of_two"), request, fleet).considered).toHaveLength(2);
  });
});

describe("smg_prefix_hash", () => {
  const ids = ["a", "b", "c", "d"] as const;
  const fleet = (busy?: string, requests = 0) =>
    candidatesOf(
      ...(ids.map((id) => ({ id, account: { requests: id === busy ? requests : 4 } })) as unknown as [
        { id: string; account: { requests: number } },
      ]),
    );

  it("sends equal heads of 256 tokens to one endpoint, whatever follows", () => {
    const peer = createPeer("smg_prefix_hash");
    const tails = times(20, (index) => idChosenBy(peer, blocks(1, 2, 3, 100 + index), fleet()));
    expect(new Set(tails).size).toBe(1);
    const heads = times(100, (index) => idChosenBy(peer, blocks(1, 2, 100 + index), fleet()));
    expect(new Set(heads)).toEqual(new Set(ids));
  });

  it.each([
    // 5 of 17 requests on one of four are 1.18 of the mean; 6 of 18 are 1.33.
    { requests: 5, stays: true },
    { requests: 6, stays: false },
  ])("with $requests requests there against 4 elsewhere stays: $stays", ({ requests, stays }) => {
    const peer = createPeer("smg_prefix_hash");
    const own = idChosenBy(peer, blocks(1, 2, 3), fleet());
    expect(idChosenBy(peer, blocks(1, 2, 3), fleet(own, requests)) === own).toBe(stays);
  });
});
