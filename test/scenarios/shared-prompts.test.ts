import { describe, expect, it } from "vitest";
import { Balancer, endpoint, requestProfile, seededRandom } from "../../src/core/index.ts";
import { parseFleet, simulate, syntheticWorkload } from "../../src/sim/index.ts";

/** A system prompt of 4,096 tokens in blocks of 64, and a question of one block behind it. */
const HEAD = Array.from({ length: 64 }, (_, depth) => depth + 1);
const asked = (question: number) =>
  requestProfile({
    promptTokens: 4160,
    expectedOutputTokens: 100,
    prefix: { hashes: [...HEAD, 1000 + question], tokensPerBlock: 64 },
  });
const other = (n: number) =>
  requestProfile({
    promptTokens: 640,
    expectedOutputTokens: 100,
    prefix: { hashes: Array.from({ length: 10 }, (_, depth) => 1e6 + 100 * n + depth), tokensPerBlock: 64 },
  });

/** Sends `total` requests of which every fourth has the common head, `inFlight` at a time, each for as long as its turn. */
function shares(endpoints: number, total: number, inFlight: number): number[] {
  const ids = Array.from({ length: endpoints }, (_, i) => `e${i}`);
  const balancer = new Balancer({
    endpoints: ids.map((id) => endpoint({ id, kvCapacityTokens: 400_000 })),
    random: seededRandom(3),
  });
  const counts = new Map(ids.map((id) => [id, 0]));
  const flying: (() => void)[] = [];
  for (let n = 0; n < total; n++) {
    const nowMs = 10 * n;
    const decision = balancer.decide(n % 4 === 0 ? asked(n) : other(n), nowMs);
    if (decision.kind !== "routed") throw new Error(`${decision.kind} though endpoints are idle`);
    counts.set(decision.endpoint.id, (counts.get(decision.endpoint.id) ?? 0) + 1);
    balancer.firstToken(decision.lease, nowMs + 5);
    flying.push(() => balancer.finish(decision.lease, { kind: "completed", outputTokens: 100 }, nowMs + 10 * inFlight));
    if (flying.length >= inFlight) flying.shift()?.();
  }
  return [...counts.values()];
}

describe("least_delay under a system prompt that many share", () => {
  it.each([
    [200, 30],
    [20, 30],
  ])("sends nobody into a hot spot among %i endpoints", (endpoints, inFlight) => {
    const counts = shares(endpoints, 2_000, inFlight);
    // A quarter of the traffic has the common head: even if one endpoint alone were warm it must not serve all of it.
    expect(Math.max(...counts)).toBeLessThan(0.25 * 2_000);
    const busiest = counts.toSorted((a, b) => b - a).slice(0, 2);
    expect((busiest[0] ?? 0) + (busiest[1] ?? 0)).toBeLessThan(0.4 * 2_000);
  });

  it("keeps a prompt at its warm endpoint while another one is overloaded", () => {
    const balancer = new Balancer({ endpoints: ["e1", "e2", "e3"].map((id) => endpoint({ id })) });
    const start = (id: string, profile: ReturnType<typeof asked>) => {
      const decision = balancer.decide(
        profile,
        0,
        ["e1", "e2", "e3"].filter((tried) => tried !== id),
      );
      if (decision.kind === "routed") balancer.firstToken(decision.lease, 1);
    };
    start("e2", asked(1));
    start("e1", requestProfile({ promptTokens: 4160, prefix: { hashes: [7, 8, 9], tokensPerBlock: 1380 } }));
    for (let n = 0; n < 50; n++) start("e1", requestProfile({ promptTokens: 4000, expectedOutputTokens: 1000 }));
    start("e3", other(1));
    const warmOnBusy = requestProfile({ promptTokens: 4200, prefix: { hashes: [7, 8, 9, 10], tokensPerBlock: 1040 } });
    const chosen = (profile: ReturnType<typeof asked>) => balancer.explain(profile, 2).chosen?.id;
    expect(chosen(asked(2))).toBe("e2");
    expect(chosen(warmOnBusy)).not.toBe("e1");
  });

  it("serves it by all engines evenly enough that nobody waits long for a first token", () => {
    const workload = syntheticWorkload("synthetic:rate=60,requests=3000,in=exp(400),out=exp(100),prefix=1x4000,seed=1");
    const result = simulate({ workload, fleet: parseFleet("8*llama8b-h100"), policy: "least_delay" });
    const served = new Map<string, number>();
    for (const { endpoint: id } of result.requests) if (id !== undefined) served.set(id, (served.get(id) ?? 0) + 1);
    expect(result.fates.ended).toBe(3000);
    expect(Math.max(...served.values())).toBeLessThan(0.3 * 3000);
    const hits = result.requests.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0);
    const prompts = result.requests.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
    expect(hits / prompts).toBeGreaterThan(0.85);
  });
});
