import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, chosenBy, createPeer, routeTo } from "../../../test/support/peer.ts";
import { PRIOR_COEFFICIENTS, prefillMs } from "../../core/index.ts";

describe("mooncake_conductor", () => {
  it.each([
    { queued: 0, chosen: "a" },
    { queued: 100, chosen: "a" },
    { queued: 300, chosen: "b" },
  ])("with $queued tokens queued at the holder of half the prompt sends to $chosen", ({ queued, chosen }) => {
    const peer = createPeer("mooncake_conductor");
    const fleet = candidatesOf({ id: "a", account: { waitingPrefillTokens: queued, requests: 40 } }, { id: "b" });
    routeTo(peer, "a", blocks(1, 2), fleet);
    const choice = chosenBy(peer, blocks(1, 2, 3, 4), fleet);
    expect(choice.chosen.endpoint.id).toBe(chosen);
    const engine = PRIOR_COEFFICIENTS;
    expect(choice.considered.map(({ score }) => score)).toEqual([
      prefillMs(engine, queued, 0) + prefillMs(engine, 200, 200 * 200 + 200 ** 2 / 2),
      prefillMs(engine, 400, 400 ** 2 / 2),
    ]);
  });
});
