import { describe, expect, it } from "vitest";
import { Fleet, nonEmpty, tally, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import type { Candidate } from "../policy.ts";
import { seededRandom } from "../random.ts";
import { requestProfile } from "../request.ts";
import { weightedRoundRobin } from "./weighted-round-robin.ts";

const request = requestProfile({ promptTokens: 100 });

describe("weighted_round_robin", () => {
  it.each([
    { weights: [3, 1], picks: 400, counts: [300, 100] },
    { weights: [5, 1, 1], picks: 700, counts: [500, 100, 100] },
    { weights: [0.1, 0.3], picks: 10_000, counts: [2_500, 7_500] },
    { weights: [1e308, 1e308], picks: 10_000, counts: [5_000, 5_000] },
    { weights: [1e-300, 3e-300], picks: 10_000, counts: [2_500, 7_500] },
  ])("gives weights $weights exactly their shares", ({ weights, picks, counts }) => {
    const ids = weights.map((_, index) => `e${index}`);
    const next = rotation(new Fleet(nonEmpty(weights.map((weight, index) => ({ id: `e${index}`, weight })))));
    const got = tally(times(picks, () => next()));
    expect(ids.map((id) => got[id])).toEqual(counts);
  });

  it("spreads a heavy endpoint's turns out instead of giving them in a row", () => {
    const next = rotation(
      new Fleet([
        { id: "a", weight: 20 },
        { id: "b", weight: 10 },
      ]),
    );
    expect(times(60, () => next()).join("")).toBe("aba".repeat(20));
  });

  it("shares the turns of an endpoint that is out by the weights of the others", () => {
    const next = rotation(
      new Fleet([
        { id: "a", weight: 4 },
        { id: "b", weight: 2 },
        { id: "c", weight: 1 },
      ]),
    );
    times(5, () => next());
    const counts = tally(times(300, () => next(({ endpoint }) => endpoint.id !== "a")));
    expect(Math.abs((counts.b ?? 0) - 200)).toBeLessThanOrEqual(1);
  });

  it("owes an endpoint that comes back at most one turn", () => {
    const next = rotation(new Fleet([{ id: "a" }, { id: "b" }]));
    next();
    times(50, () => next(({ endpoint }) => endpoint.id === "a"));
    const counts = tally(times(10, () => next()));
    expect(Math.abs((counts.a ?? 0) - 5)).toBeLessThanOrEqual(1);
  });
});

/** Chooses and routes; returns who got the turn. */
function rotation(fleet: Fleet): (isEligible?: (candidate: Candidate) => boolean) => string {
  const policy = weightedRoundRobin.create({});
  const random = seededRandom(1);
  return (isEligible = () => true) => {
    const candidates = nonEmpty(fleet.candidates.filter(isEligible));
    const { chosen } = policy.choose(request, candidates, policyContext({ random }));
    policy.routed?.({ request, chosen, candidates });
    return chosen.endpoint.id;
  };
}
