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
import { DISTURBANCES, withLostIndex, withSpeedFactor } from "./disturbed.ts";

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

describe("withLostIndex", () => {
  const prefix = { hashes: [1, 2, 3, 4], tokensPerBlock: 64 };
  const profile = () => requestProfile({ promptTokens: 300, prefix });

  /** Tokens found for requests that have all been everywhere before. */
  function lookups(lostShare: number): number[][] {
    const found: number[][] = [];
    let current = profile();
    const see = (candidate: Candidate) =>
      found.push([candidate.cachedTokens(current), candidate.cachedTokens(current)]) > 0;
    const balancer = balancerOf(withLostIndex(watching(see), lostShare, 7));
    for (const { mirror } of balancer.members) mirror.leave(mirror.enter(prefix, 300, 0), 0, true, 0);
    for (let i = 0; i < 1000; i++) {
      current = profile();
      balancer.decide(current, i);
    }
    return found;
  }

  it("loses a lookup with the probability it is told, and the same again when it is repeated", () => {
    const found = lookups(0.2);
    expect(found.every(([first, again]) => first === again)).toBe(true);
    const lost = found.filter(([tokens]) => tokens === 0).length;
    // 3,000 draws: a standard deviation is 22.
    expect(Math.abs(lost - 600)).toBeLessThan(90);
    expect(new Set(found.flat())).toEqual(new Set([0, 256]));
  });

  it("loses nothing, and everything, at the ends", () => {
    expect(new Set(lookups(0).flat())).toEqual(new Set([256]));
    expect(new Set(lookups(1).flat())).toEqual(new Set([0]));
  });

  it("books what was found", () => {
    const balancer = balancerOf(
      withLostIndex(
        watching(() => undefined),
        1,
        7,
      ),
    );
    for (const { mirror } of balancer.members) mirror.leave(mirror.enter(prefix, 300, 0), 0, true, 0);
    balancer.decide(profile(), 1);
    expect(balancer.members.map(({ account }) => account.waitingPrefillTokens).toSorted()).toEqual([0, 0, 300]);
  });
});

describe("DISTURBANCES", () => {
  const fleet = parseFleet("2*llama8b-h100,llama8b-a100");

  it("tells the balancer another KV cache, and leaves the engine its own", () => {
    const told = DISTURBANCES.flatMap((each) => each.fleet?.(fleet).engines[0] ?? []);
    expect(told.map(({ configuredKvTokens }) => configuredKvTokens)).toEqual([490_350, 443_650]);
    expect(told.every(({ profile: { kvTokens } }) => kvTokens === 467_000)).toBe(true);
  });

  it("has each wrong in one way", () => {
    for (const { fleet: wrongFleet, policy } of DISTURBANCES) {
      expect([wrongFleet, policy].filter((each) => each !== undefined)).toHaveLength(1);
      expect(policy?.(fleet.engines, 1).name ?? "least_delay").toBe("least_delay");
    }
  });
});
