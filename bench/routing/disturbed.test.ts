import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  Balancer,
  type Candidate,
  endpoint,
  leastBy,
  type Policy,
  type PolicyDefinition,
  requestProfile,
  seededRandom,
} from "../../src/core/index.ts";
import { parseFleet } from "../../src/sim/index.ts";
import { DISTURBANCES, withSpeedFactor, withTrueCapacity } from "./disturbed.ts";

/** Sends to the endpoint whose decode step it believes to be shortest, and tells what it saw. */
function watching(see: (candidate: Candidate) => void, parts: Partial<Policy> = {}): PolicyDefinition {
  const policy: Policy = {
    choose: (_request, candidates, { random }) => {
      candidates.forEach(see);
      const chosen = leastBy(candidates, ({ speed }) => speed.decodeStepMs(1, 0), random);
      return { chosen, considered: candidates.map((each) => ({ endpoint: each.endpoint.id, score: 0 })), reason: "" };
    },
    ...parts,
  };
  return { name: "watching", summary: "", score: "", options: z.looseObject({}), create: () => policy };
}

const ENDPOINTS = ["a", "b", "c"].map((id) => endpoint({ id, kvCapacityTokens: 1e6 }));
const balancerOf = (policy: PolicyDefinition) =>
  new Balancer({ policy, endpoints: ENDPOINTS, random: seededRandom(1) });

describe("withSpeedFactor", () => {
  it("shows each endpoint as slow as it is told, and chooses the pool's own candidate", () => {
    const stepsMs = new Map<string, number>();
    const see = ({ endpoint: { id }, speed }: Candidate) => stepsMs.set(id, speed.decodeStepMs(8, 1000));
    const balancer = balancerOf(withSpeedFactor(watching(see), (id) => (id === "b" ? 0.5 : 2)));
    const decision = balancer.decide(requestProfile({ promptTokens: 10 }), 0);
    expect(decision).toMatchObject({ kind: "routed", endpoint: { id: "b" } });
    const trueMs = balancer.members[0]?.speed.decodeStepMs(8, 1000) ?? Number.NaN;
    expect(stepsMs.get("a")).toBeCloseTo(2 * trueMs);
    expect(stepsMs.get("b")).toBeCloseTo(trueMs / 2);
    expect(balancer.members[1]?.account.requests).toBe(1);
  });

  it("shows late binding the same, and what is not wrong as it is", () => {
    const seen: Candidate[] = [];
    const see = (candidate: Candidate) => seen.push(candidate) > 0;
    const lateBinding = {
      fits: (_request: unknown, candidate: Candidate) => see(candidate),
      canBegin: (_request: unknown, candidate: Candidate) => see(candidate),
      holdKey: (_request: unknown, candidate: Candidate) => Number(see(candidate)),
    };
    const balancer = balancerOf(
      withSpeedFactor(
        watching(() => undefined, { lateBinding }),
        () => 2,
      ),
    );
    for (let i = 0; i < 4; i++) balancer.decide(requestProfile({ promptTokens: 10 }), i);
    expect(seen.length).toBeGreaterThan(0);
    const truth = balancer.members.find((member) => member.endpoint === seen[0]?.endpoint);
    expect(seen[0]?.speed.prefillMs(100, 0)).toBeCloseTo(2 * (truth?.speed.prefillMs(100, 0) ?? Number.NaN));
    expect(seen[0]?.account).toBe(truth?.account);
    expect(seen[0]?.held).toBe(truth?.held);
    expect([seen[0]?.kvTokens, seen[0]?.kvCapacityTokens]).toEqual([truth?.kvTokens, truth?.kvCapacityTokens]);
  });
});

describe("withTrueCapacity", () => {
  it("shows the whole capacity, while the index holds a part of it", () => {
    const capacities = new Set<number | undefined>();
    const see = ({ kvCapacityTokens }: Candidate) => capacities.add(kvCapacityTokens);
    const endpoints = [endpoint({ id: "a", kvCapacityTokens: 800 })];
    const balancer = new Balancer({ policy: withTrueCapacity(watching(see), 0.8), endpoints });
    const prefix = { hashes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], tokensPerBlock: 100 };
    const request = requestProfile({ promptTokens: 1000, prefix });
    const decision = balancer.decide(request, 0);
    if (decision.kind !== "routed") throw new Error(decision.kind);
    balancer.finish(decision.lease, { kind: "completed" }, 1);
    expect([...capacities]).toEqual([1000]);
    expect(balancer.members[0]?.cachedTokens(request)).toBe(800);
  });
});

describe("DISTURBANCES", () => {
  const fleet = parseFleet("2*llama8b-h100,llama8b-a100");

  it("tells the balancer another KV cache, and leaves the engine its own", () => {
    const told = DISTURBANCES.flatMap((each) => each.fleet?.(fleet).engines[0] ?? []);
    expect(told.map(({ configuredKvTokens }) => configuredKvTokens)).toEqual([373_600, 490_350, 443_650]);
    expect(told.every(({ profile: { kvTokens } }) => kvTokens === 467_000)).toBe(true);
  });

  it("has each wrong in one way: what is configured, what the policy sees, or the index between both", () => {
    const wrong = DISTURBANCES.map(({ name, ...parts }) => [name, Object.keys(parts).toSorted()]);
    expect(Object.fromEntries(wrong)).toEqual({
      "20 % of the index lost": ["fleet", "policy"],
      "KV capacity +5 %": ["fleet"],
      "KV capacity -5 %": ["fleet"],
      "coefficients x2": ["policy"],
      "coefficients x0.5": ["policy"],
    });
    for (const { policy } of DISTURBANCES) expect(policy?.().name ?? "least_delay").toBe("least_delay");
  });

  it("loses a fifth of the index, and shows the policy the engine's own capacity", () => {
    const lost = DISTURBANCES.find(({ name }) => name === "20 % of the index lost");
    const kvCapacityTokens = lost?.fleet?.(fleet).engines[0]?.configuredKvTokens;
    const balancer = new Balancer({
      policy: lost?.policy?.() ?? "none",
      endpoints: [endpoint({ id: "a", kvCapacityTokens })],
    });
    const hashes = Array.from({ length: 467 }, (_, block) => block);
    const request = requestProfile({ promptTokens: 467_000, prefix: { hashes, tokensPerBlock: 1000 } });
    const decision = balancer.decide(request, 0);
    if (decision.kind !== "routed") throw new Error(decision.kind);
    balancer.finish(decision.lease, { kind: "completed" }, 1);
    const [member] = balancer.members;
    expect(member?.kvCapacityTokens).toBe(467_000);
    expect(member?.cachedTokens(request)).toBe(373_000);
  });
});
