import { describe, expect, it } from "vitest";
import { Fleet, tally, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import { seededRandom } from "../random.ts";
import { requestProfile } from "../request.ts";
import { random } from "./random.ts";

describe("random", () => {
  it("draws every endpoint equally often, whatever its load", () => {
    const fleet = new Fleet([{ id: "a" }, { id: "b", weight: 9 }, { id: "c" }, { id: "d" }]);
    const request = requestProfile({ promptTokens: 100 });
    times(20, () => fleet.run("a", request));
    const policy = random.create({});
    const context = policyContext({ random: seededRandom(5) });
    const counts = tally(times(4000, () => policy.choose(request, fleet.candidates, context).chosen.endpoint.id));
    // Binomial, n = 4000, p = 1/4: standard deviation 27.4; four of them.
    for (const id of ["a", "b", "c", "d"]) expect(Math.abs((counts[id] ?? 0) - 1000)).toBeLessThan(110);
  });
});
