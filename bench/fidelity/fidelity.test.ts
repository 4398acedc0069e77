import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseFleet, syntheticWorkload } from "../../src/sim/index.ts";
import { type Figures, type PolicyComparison, runScenario } from "./run.ts";
import { LEAST_DELAY, type Scenario } from "./scenarios.ts";

/** Sessions of three turns that share nothing: on one engine each turn finds what it has of those before, whatever the times. */
const SCENARIO: Scenario = {
  name: "smoke",
  workload: syntheticWorkload(
    "synthetic:rate=4,requests=18,in=uniform(100,300),out=uniform(1,40),turns=3,think=uniform(1s,2s)",
  ),
  fleet: parseFleet("1*llama8b-h100"),
  policies: [LEAST_DELAY],
  shows: "fidelity",
};

describe("a workload that is served live and simulated", () => {
  let scratch: string;
  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), "evenkeel-fidelity-"));
  });
  afterAll(() => rm(scratch, { recursive: true }));

  it("ends all requests on both sides, with the same tokens, cached ones included", async () => {
    const result = await runScenario(SCENARIO, { speedup: 10, simulations: 1, atOnce: 1, scratch });
    const { live, simulated, failures } = result.policies[0] as PolicyComparison;
    expect(failures).toEqual([]);
    expect(totals(live)).toEqual(totals(simulated));
    expect(live.ended).toBe(18);
    expect(live.hitRatio).toBeGreaterThan(0);
  }, 60_000);
});

function totals({ ended, promptTokens, outputTokens, hitRatio }: Figures): object {
  return { ended, promptTokens, outputTokens, hitRatio };
}
