import { describe, expect, it } from "vitest";
import { type CandidateFacts, candidate } from "../../../test/support/candidate.ts";
import { missingKvTokens } from "./kv-room.ts";

/** KV tokens kept free at an endpoint of 10,000 when a request of `outputTokens` comes. */
function reserveOf(account: CandidateFacts["account"], outputTokens: number): number {
  const empty = candidate({ id: "a", kvCapacityTokens: 10_000, ...(account && { account }) });
  return missingKvTokens(empty, 0, 10_000, outputTokens);
}

describe("room in a KV cache", () => {
  it("is what the requests there, the newcomer's prompt and the reserve leave of it", () => {
    const account = { requests: 4, outputTokens: 400 };
    const engine = candidate({ id: "a", kvCapacityTokens: 10_000, account });
    const missing = (promptTokens: number) => missingKvTokens(engine, 5000, promptTokens, 100);
    expect([missing(4700), missing(4701), missing(0), missing(100_000)]).toEqual([0, 1, -4700, 95_300]);
  });

  it("never lacks where the size of the cache is not known", () => {
    const engine = candidate({ id: "a", account: { requests: 100, outputTokens: 1e6 } });
    expect(missingKvTokens(engine, 1e9, 1e9, 1e6)).toBe(0);
  });

  it.each([
    { what: "the newcomer's output alone", requests: 0, outputTokens: 0, newcomer: 200, reserve: 600 },
    { what: "what all have to generate on the mean", requests: 1, outputTokens: 100, newcomer: 700, reserve: 1200 },
    { what: "the same for few requests", requests: 2, outputTokens: 200, newcomer: 100, reserve: 300 },
    { what: "the same for many", requests: 200, outputTokens: 20_000, newcomer: 100, reserve: 300 },
  ])("keeps a reserve of three times $what", ({ requests, outputTokens, newcomer, reserve }) => {
    expect(reserveOf({ requests, outputTokens }, newcomer)).toBe(reserve);
  });

  it.each([
    { outputTokens: 0, reserve: 150 },
    { outputTokens: 50, reserve: 150 },
    { outputTokens: 51, reserve: 153 },
    { outputTokens: 833, reserve: 2499 },
    { outputTokens: 834, reserve: 2500 },
    { outputTokens: 1_000_000, reserve: 2500 },
  ])("keeps 1.5 % of it at least and a quarter at most: $reserve for $outputTokens each", (row) => {
    const account = { requests: 9, outputTokens: 9 * row.outputTokens };
    expect(reserveOf(account, row.outputTokens)).toBe(row.reserve);
  });
});
