import { describe, expect, it } from "vitest";
import { Fleet, tally, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import { seededRandom } from "../random.ts";
import { requestProfile } from "../request.ts";
import { powerOfTwo } from "./power-of-two.ts";

const request = requestProfile({ promptTokens: 100, expectedOutputTokens: 100 });

describe("power_of_two", () => {
  it("compares two different endpoints, every pair equally often", () => {
    const pairs = tally(drawn(3000).map(({ considered }) => considered.map(({ endpoint }) => endpoint).join("")));
    expect(Object.keys(pairs).toSorted()).toEqual(["ab", "ac", "bc"]);
    // Binomial, n = 3000, p = 1/3: standard deviation 25.8; four of them.
    for (const count of Object.values(pairs)) expect(Math.abs(count - 1000)).toBeLessThan(104);
  });

  it("takes the one with fewer seconds of work, so the busiest of the fleet gets nothing", () => {
    const counts = tally(drawn(3000).map(({ chosen }) => chosen.endpoint.id));
    expect(counts.c).toBeUndefined();
    // The idle one wins each of its two pairs: 2/3 of the draws.
    expect(Math.abs((counts.a ?? 0) - 2000)).toBeLessThan(104);
  });

  it("sees capacity: the same work is less on a faster endpoint", () => {
    const fleet = new Fleet([
      { id: "slow", tokensPerSecond: 100 },
      { id: "fast", tokensPerSecond: 1000 },
    ]);
    times(5, () => fleet.send("fast", request));
    const { chosen } = powerOfTwo.create({}).choose(request, fleet.candidates, policyContext());
    expect(chosen.endpoint.id).toBe("fast");
  });

  function drawn(count: number) {
    const fleet = new Fleet([{ id: "a" }, { id: "b" }, { id: "c" }]);
    fleet.run("b", request);
    times(2, () => fleet.run("c", request));
    const policy = powerOfTwo.create({});
    const random = seededRandom(6);
    return times(count, () => policy.choose(request, fleet.candidates, policyContext({ random })));
  }
});
