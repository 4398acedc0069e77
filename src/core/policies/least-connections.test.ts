import { describe, expect, it } from "vitest";
import { Fleet, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import { requestProfile } from "../request.ts";
import { leastConnections } from "./least-connections.ts";

const request = requestProfile({ promptTokens: 100 });

describe("least_connections", () => {
  it.each([
    { why: "fewest requests", a: [1, 3], b: [1, 2], chosen: "b" },
    { why: "waiting and running requests alike", a: [1, 1], b: [1, 2], chosen: "a" },
    { why: "requests over weight", a: [10, 5], b: [1, 1], chosen: "a" },
    {
      why: "the request itself counted, so a heavy endpoint with one comes before an idle light one",
      a: [10, 1],
      b: [1, 0],
      chosen: "a",
    },
    { why: "until the light one is behind its share", a: [4, 4], b: [1, 0], chosen: "b" },
  ])("chooses by $why", ({ a, b, chosen }) => {
    const fleet = new Fleet([
      { id: "a", weight: a[0] as number },
      { id: "b", weight: b[0] as number },
    ]);
    times(a[1] as number, () => fleet.send("a", request));
    times(b[1] as number, () => fleet.run("b", request));
    const choice = leastConnections.create({}).choose(request, fleet.candidates, policyContext());
    expect(choice.chosen.endpoint.id).toBe(chosen);
  });

  it("does not see how large requests are", () => {
    const fleet = new Fleet([{ id: "a" }, { id: "b" }]);
    fleet.send("a", requestProfile({ promptTokens: 80_000 }));
    times(2, () => fleet.send("b", requestProfile({ promptTokens: 10 })));
    const choice = leastConnections.create({}).choose(request, fleet.candidates, policyContext());
    expect(choice.chosen.endpoint.id).toBe("a");
  });
});
