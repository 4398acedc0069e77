import { describe, expect, it } from "vitest";
import { Fleet, nonEmpty, tally, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import { seededRandom } from "../random.ts";
import { requestProfile } from "../request.ts";
import { weightedRandom } from "./weighted-random.ts";

/** One work token: ten prompt tokens at 0.1 each, no output. */
const unit = requestProfile({ promptTokens: 10, expectedOutputTokens: 0 });

describe("weighted_random", () => {
  const policy = weightedRandom.create({ horizonSeconds: 1 });

  it("draws by free capacity", () => {
    const fleet = loaded({ a: [30, 100], b: [70, 100], c: [50, 150] });
    expect(scores(fleet)).toEqual({ a: 0.35, b: 0.15, c: 0.5 });
    const context = policyContext({ random: seededRandom(2) });
    const counts = tally(times(4000, () => policy.choose(unit, fleet.candidates, context).chosen.endpoint.id));
    // Binomial, n = 4000, p at most 1/2: standard deviation at most 31.6; four of them.
    for (const [id, expected] of [
      ["a", 1400],
      ["b", 600],
      ["c", 2000],
    ] as const) {
      expect(Math.abs((counts[id] ?? 0) - expected)).toBeLessThan(127);
    }
  });

  it("gives nothing to an endpoint with more work than its horizon holds", () => {
    expect(scores(loaded({ a: [120, 100], b: [50, 100] }))).toEqual({ a: 0, b: 1 });
  });

  it("draws by capacity when no endpoint has any free", () => {
    expect(scores(loaded({ a: [100, 100], b: [400, 300] }))).toEqual({ a: 0.25, b: 0.75 });
  });

  it("counts a longer horizon as more room", () => {
    const fleet = loaded({ a: [100, 100], b: [0, 100] });
    const { considered } = weightedRandom.create({ horizonSeconds: 2 }).choose(unit, fleet.candidates, policyContext());
    expect(considered.map(({ terms }) => terms?.freeTokensPerSecond)).toEqual([50, 100]);
  });

  function scores(fleet: Fleet): Record<string, number> {
    const { considered } = policy.choose(unit, fleet.candidates, policyContext());
    return Object.fromEntries(considered.map(({ endpoint, score }) => [endpoint, Math.round(score * 1e9) / 1e9]));
  }
});

/** Endpoints with work tokens in flight and a capacity in tokens per second. */
function loaded(endpoints: Readonly<Record<string, readonly [work: number, capacity: number]>>): Fleet {
  const entries = Object.entries(endpoints);
  const fleet = new Fleet(nonEmpty(entries.map(([id, [, tokensPerSecond]]) => ({ id, tokensPerSecond }))));
  for (const [id, [work]] of entries) times(work, () => fleet.send(id, unit));
  return fleet;
}
