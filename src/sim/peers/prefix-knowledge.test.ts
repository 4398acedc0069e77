import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { blocks } from "../../../test/support/peer.ts";
import { requestProfile } from "../../core/index.ts";
import { mirrored, OwnIndexes, uncachedTokens } from "./prefix-knowledge.ts";

function routed(indexes: OwnIndexes, capacityTokens: number | undefined, ...hashes: readonly number[]): void {
  const [chosen] = candidatesOf({
    id: "a",
    ...(capacityTokens !== undefined && { kvCapacityTokens: capacityTokens }),
  });
  indexes.routed({ request: blocks(...hashes), chosen, candidates: [chosen] });
}

describe("OwnIndexes", () => {
  const [a, b] = candidatesOf({ id: "a" }, { id: "b" }) as unknown as [
    ReturnType<typeof candidatesOf>[0],
    ReturnType<typeof candidatesOf>[0],
  ];

  it("knows what it sent where, and nothing of the others", () => {
    const indexes = new OwnIndexes();
    routed(indexes, undefined, 1, 2);
    expect([a, b].map((each) => indexes.matchedShare(blocks(1, 2, 3, 4), each))).toEqual([0.5, 0]);
  });

  it("never counts the last prompt token as cached", () => {
    const indexes = new OwnIndexes();
    routed(indexes, undefined, 1, 2);
    expect(indexes.cachedTokens(blocks(1, 2), a)).toBe(199);
    expect(uncachedTokens(indexes, blocks(1, 2), a)).toBe(1);
  });

  it("is as large as the endpoint's KV cache, and follows when that becomes known", () => {
    const indexes = new OwnIndexes();
    routed(indexes, undefined, 1, 2, 3, 4);
    routed(indexes, 300, 9);
    expect(indexes.of(a).tokens).toBe(300);
    expect(indexes.matchedTokens(blocks(1, 2, 3), a)).toBe(200);
  });

  it("matches nothing of a prompt without blocks", () => {
    const indexes = new OwnIndexes();
    routed(indexes, undefined, 1);
    expect(indexes.matchedShare(requestProfile({ promptTokens: 0 }), a)).toBe(0);
  });
});

describe("mirrored", () => {
  it("is the balancer's own view", () => {
    const [chosen] = candidatesOf({ id: "a", cachedTokens: 70 });
    expect(uncachedTokens(mirrored, blocks(1), chosen)).toBe(30);
  });
});
