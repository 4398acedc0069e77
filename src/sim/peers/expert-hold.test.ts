import { describe, expect, it } from "vitest";
import { candidate, candidatesOf } from "../../../test/support/candidate.ts";
import { blocks, chosenBy, createPeer, idChosenBy } from "../../../test/support/peer.ts";
import { requestProfile } from "../../core/index.ts";

const EXPERTS = [
  "expert_lmetric_shortest",
  "expert_lmetric_fcfs",
  "expert_dynamo_32_shortest",
  "expert_least_kv_shortest",
];

describe.each(EXPERTS)("%s", (name) => {
  it.each([
    { kvTokens: 885, requests: 3, hasRoom: true, why: "985 of 1,000 with the prompt" },
    { kvTokens: 886, requests: 3, hasRoom: false, why: "one more" },
    { kvTokens: 950, requests: 0, hasRoom: true, why: "nothing runs there" },
  ])("with $kvTokens KV tokens and $requests requests has room: $hasRoom ($why)", ({ kvTokens, requests, hasRoom }) => {
    const endpoint = candidate({ id: "a", kvTokens, kvCapacityTokens: 1000, account: { requests } });
    expect(createPeer(name).hasRoom?.(blocks(1), endpoint, [endpoint])).toBe(hasRoom);
  });

  it("has room where the size of the cache is unknown", () => {
    const endpoint = candidate({ id: "a", kvTokens: 1e9, account: { requests: 9 } });
    expect(createPeer(name).hasRoom?.(blocks(1), endpoint, [endpoint])).toBe(true);
  });

  it("lets the shortest prompt go first, or the first to come", () => {
    const key = createPeer(name).queueKey?.(blocks(1, 2, 3), 50);
    expect(key).toBe(name.endsWith("shortest") ? 300 : undefined);
  });
});

describe("expert holds", () => {
  const request = requestProfile({ promptTokens: 320 });
  const fleet = candidatesOf(
    { id: "a", kvTokens: 640, kvCapacityTokens: 10_000, account: { requests: 3 }, cachedTokens: 160 },
    { id: "b", kvTokens: 0, kvCapacityTokens: 4000, account: { requests: 1 } },
  );

  it.each([
    { name: "expert_lmetric_shortest", scores: [160 * 4, 320 * 2], chosen: undefined },
    { name: "expert_dynamo_32_shortest", scores: [32 * 10 + 60, 32 * 20 + 20], chosen: "a" },
    { name: "expert_least_kv_shortest", scores: [0.096, 0.08], chosen: "b" },
  ])("$name chooses by its rule and the mirror of the balancer: $scores", ({ name, scores, chosen }) => {
    expect(chosenBy(createPeer(name), request, fleet).considered.map(({ score }) => score)).toEqual(scores);
    if (chosen !== undefined) expect(idChosenBy(createPeer(name), request, fleet)).toBe(chosen);
  });
});
