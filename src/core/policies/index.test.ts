import { describe, expect, it } from "vitest";
import { createPolicy, findPolicy, policyDefinitions } from "./index.ts";

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

describe("createPolicy", () => {
  it.each([
    [{ line: 0 }, "policyOptions.line: expected number to be >=0.01"],
    [{ line: "full" }, "policyOptions.line: expected number, received string"],
    [{ lines: 1 }, 'policyOptions: Unrecognized key: "lines"'],
    ["line", "policyOptions: expected object, received string"],
    [
      { line: 99, decodeWeight: -1 },
      "policyOptions.decodeWeight: expected number to be >=0; policyOptions.line: expected number to be <=10",
    ],
  ])("says of the options %j where they are wrong and what was expected", (options, problem) => {
    expect(() => createPolicy("token_aware", options)).toThrow(new RangeError(`policy "token_aware": ${problem}`));
  });
});
