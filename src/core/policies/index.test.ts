import { describe, expect, it } from "vitest";
import { findPolicy, policyDefinitions } from "./index.ts";

describe("findPolicy", () => {
  it("finds every policy by its name", () => {
    for (const definition of policyDefinitions) expect(findPolicy(definition.name)).toBe(definition);
  });

  it("names the policies there are when asked for another", () => {
    expect(() => findPolicy("least_loaded")).toThrow(
      'unknown policy "least_loaded"; known policies: least_delay, token_aware, session_affinity, power_of_two, ' +
        "least_connections, weighted_random, random, weighted_round_robin, round_robin",
    );
  });
});
