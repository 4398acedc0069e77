import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { costOf, workTokens } from "./cost.ts";
import { requestProfile } from "./request.ts";

describe("costOf", () => {
  it.each([
    // promptTokens, cachedTokens, prefillTokens, prefillPairs
    [1000, 0, 1000, 500_000],
    [1000, 400, 600, 600 * 400 + 180_000],
    [1000, 999, 1, 999.5],
    [1000, 1000, 0, 0],
    [1000, 5000, 0, 0],
    [1000, -1, 1000, 500_000],
    [0, 0, 0, 0],
    [12.5, 3.9, 10, 80],
  ])("of %d prompt tokens with %d cached is %d to compute, %d pairs", (promptTokens, cached, prefillTokens, pairs) => {
    expect(costOf(requestProfile({ promptTokens }), cached)).toMatchObject({ prefillTokens, prefillPairs: pairs });
  });

  it("counts attention like adding the new tokens one by one", () => {
    fc.assert(
      fc.property(fc.nat(300), fc.nat(300), (cached, fresh) => {
        let pairs = 0;
        for (let i = 0; i < fresh; i++) pairs += cached + i + 0.5;
        expect(costOf(requestProfile({ promptTokens: cached + fresh }), cached).prefillPairs).toBe(pairs);
      }),
    );
  });

  it("expects the whole output, in whole tokens", () => {
    const output = { meanTokens: 10.4, remainingAfter: () => 10.4 };
    expect(costOf(requestProfile({ promptTokens: 1, output }), 0).decodeTokens).toBe(10);
  });
});

describe("workTokens", () => {
  it("counts ten prompt tokens like one output token", () => {
    expect(workTokens(1000, 50)).toBe(150);
  });
});
