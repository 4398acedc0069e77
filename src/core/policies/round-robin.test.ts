import { describe, expect, it } from "vitest";
import { Fleet, nonEmpty, tally, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import type { Candidate } from "../policy.ts";
import { seededRandom } from "../random.ts";
import { requestProfile } from "../request.ts";
import { roundRobin } from "./round-robin.ts";

const request = requestProfile({ promptTokens: 100 });

describe("round_robin", () => {
  it("gives each endpoint one turn before any gets its second", () => {
    const next = rotation(new Fleet([{ id: "a" }, { id: "b" }, { id: "c" }]));
    const turns = times(9, () => next());
    for (const start of [0, 3, 6]) expect(turns.slice(start, start + 3).toSorted()).toEqual(["a", "b", "c"]);
  });

  it("spreads the turns of an endpoint that is out evenly over the others", () => {
    const next = rotation(new Fleet(nonEmpty(["e1", "e2", "e3", "e4", "e5"].map((id) => ({ id })))));
    times(7, () => next());
    const counts = tally(times(500, () => next(({ endpoint }) => endpoint.id !== "e2")));
    expect(counts).toEqual({ e1: 125, e3: 125, e4: 125, e5: 125 });
  });

  it("gives an endpoint that comes back one turn, not all those it missed", () => {
    const next = rotation(new Fleet([{ id: "a" }, { id: "b" }]));
    times(50, () => next(({ endpoint }) => endpoint.id === "a"));
    expect(tally(times(10, () => next()))).toEqual({ a: 5, b: 5 });
  });

  it("does not always begin with the endpoint listed first", () => {
    const fleet = new Fleet([{ id: "a" }, { id: "b" }, { id: "c" }]);
    const random = seededRandom(4);
    const policy = roundRobin.create({});
    const firsts = times(
      60,
      () => policy.choose(request, fleet.candidates, policyContext({ random })).chosen.endpoint.id,
    );
    expect(new Set(firsts)).toEqual(new Set(["a", "b", "c"]));
  });
});

/** Chooses and routes; returns who got the turn. */
function rotation(fleet: Fleet): (isEligible?: (candidate: Candidate) => boolean) => string {
  const policy = roundRobin.create({});
  const random = seededRandom(1);
  return (isEligible = () => true) => {
    const candidates = nonEmpty(fleet.candidates.filter(isEligible));
    const { chosen } = policy.choose(request, candidates, policyContext({ random }));
    policy.routed?.({ request, chosen, candidates });
    return chosen.endpoint.id;
  };
}
