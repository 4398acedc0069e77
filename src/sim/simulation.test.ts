import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Candidate, leastBy, type Policy, type PolicyDefinition, type RequestProfile } from "../core/index.ts";
import { type EngineProfile, engineProfile } from "./engine-profiles.ts";
import { parseFleetEvents } from "./fleet-events.ts";
import { type FleetSpec, parseFleet } from "./fleet-spec.ts";
import { type Simulation, simulate } from "./simulation.ts";
import type { Replication, SimulationOptions } from "./simulation-options.ts";
import { syntheticWorkload } from "./workload/synthetic.ts";
import type { Workload, WorkloadRequest } from "./workload/workload.ts";

const FLEET = parseFleet("2*llama8b-h100");
const CHAT = syntheticWorkload(
  "synthetic:rate=20,requests=400,in=exp(800),out=exp(100),prefix=4x512,turns=4,think=exp(2s)",
);

/** A policy that sends to the endpoint with the fewest requests, or does what a test wants otherwise. */
function policyOf(parts: Partial<Policy> = {}): PolicyDefinition {
  const policy: Policy = {
    choose: (_request, candidates, { random }) => ({
      chosen: leastBy(candidates, ({ account }) => account.requests, random),
      considered: [],
      reason: "fewest",
    }),
    ...parts,
  };
  return { name: "test", summary: "", score: "", options: z.looseObject({}), create: () => policy };
}

function request(parts: Partial<WorkloadRequest> = {}): WorkloadRequest {
  return {
    promptTokens: 100,
    outputTokens: 10,
    blockIds: [],
    sessionKey: undefined,
    tenant: undefined,
    next: undefined,
    ...parts,
  };
}

function workloadOf(...arrivals: readonly (readonly [atMs: number, request: WorkloadRequest])[]): Workload {
  return { name: "w", blockTokens: 64, arrivals: arrivals.map(([atMs, each]) => ({ atMs, request: each })) };
}

function run(options: Partial<SimulationOptions> = {}): Simulation {
  return simulate({ workload: CHAT, fleet: FLEET, policy: policyOf(), ...options });
}

function smallFleet(engines: number, kvTokens: number): FleetSpec {
  const profile: EngineProfile = { ...(engineProfile("llama8b-h100") as EngineProfile), kvTokens };
  const specs = Array.from({ length: engines }, (_, i) => ({ id: `e-${i + 1}`, profile, speed: 1 }));
  return { text: "small", engines: specs };
}

describe("simulate", () => {
  it.each(["least_delay", "power_of_two", "session_affinity"])("gives the same result again under %s", (policy) => {
    expect(run({ policy })).toEqual(run({ policy }));
  });

  it("draws what its seed says", () => {
    const placesOf = (seed: number) => run({ policy: "random", seed }).requests.map(({ endpoint }) => endpoint);
    expect(placesOf(7)).toEqual(placesOf(7));
    expect(placesOf(7)).not.toEqual(placesOf(8));
  });

  it("tells each request's story in order", () => {
    const { requests, fates } = run({ sendDelayMs: 5 });
    expect(fates).toEqual({ ended: 400, refused: 0, oversized: 0, lost: 0, unfinished: 0 });
    for (const { arrivedAtMs, sentAtMs, firstTokenAtMs, endedAtMs, outputTokens } of requests) {
      expect(sentAtMs).toBe(arrivedAtMs);
      expect(firstTokenAtMs).toBeGreaterThan((sentAtMs ?? 0) + 5);
      if (outputTokens === 1) expect(endedAtMs).toBe(firstTokenAtMs);
      else expect(endedAtMs).toBeGreaterThan(firstTokenAtMs ?? 0);
    }
    const arrivals = requests.map(({ arrivedAtMs }) => arrivedAtMs);
    expect(arrivals).toEqual(arrivals.toSorted((a, b) => a - b));
  });

  it("waits for the answer and the client's thinking before the next turn", () => {
    const third = { thinkMs: 50, request: request({ promptTokens: 3 }) };
    const second = { thinkMs: 1000, request: request({ promptTokens: 2, next: third }) };
    const { requests } = run({ workload: workloadOf([10, request({ promptTokens: 1, next: second })]) });
    expect(requests.map(({ promptTokens }) => promptTokens)).toEqual([1, 2, 3]);
    expect(requests[1]?.arrivedAtMs).toBe((requests[0]?.endedAtMs ?? 0) + 1000);
    expect(requests[2]?.arrivedAtMs).toBe((requests[1]?.endedAtMs ?? 0) + 50);
  });

  it("finds in the cache what an endpoint computed before, in full blocks", () => {
    const again = request({ promptTokens: 300, blockIds: [1, 2, 3, 4, 5] });
    const fleet = parseFleet("llama8b-h100");
    const { requests } = run({ fleet, workload: workloadOf([0, again], [5_000, again]) });
    expect(requests.map(({ cachedTokens }) => cachedTokens)).toEqual([0, 256]);
  });

  it("tells the balancer of a request what a proxy sees, and nothing of its answer's length", () => {
    const seen: RequestProfile[] = [];
    const { choose } = policyOf().create({});
    const policy = policyOf({
      choose(profile, ...rest) {
        seen.push(profile);
        return choose(profile, ...rest);
      },
    });
    const long = request({ promptTokens: 130, outputTokens: 900, blockIds: [8, 9, 10], sessionKey: "s" });
    run({ policy, workload: workloadOf([0, long], [60_000, request({ outputTokens: 900 })]) });
    expect(seen[0]).toMatchObject({
      promptTokens: 130,
      prefix: { hashes: [8, 9], tokensPerBlock: 64 },
      sessionKey: "s",
      isStreaming: true,
      maxOutputTokens: undefined,
    });
    expect(seen[1]?.prefix).toBeUndefined();
    // One answer of 900 against a prior of 256 that weighs as much as twenty.
    expect(seen[1]?.output.meanTokens).toBeGreaterThan(256);
    expect(seen[1]?.output.meanTokens).toBeLessThan(320);
  });

  it("keeps the balancer's accounts as the engines are, and empty in the end", () => {
    let candidates: readonly Candidate[] = [];
    const { choose } = policyOf().create({});
    const policy = policyOf({
      choose(profile, all, context) {
        candidates = all;
        for (const { account, signals } of all) {
          expect((signals?.runningRequests ?? 0) + (signals?.waitingRequests ?? 0)).toBeLessThanOrEqual(
            account.requests,
          );
          expect(signals?.observedAtMs).toBe(context.nowMs);
        }
        return choose(profile, all, context);
      },
    });
    expect(run({ policy }).fates.ended).toBe(400);
    expect(candidates).toHaveLength(2);
    for (const { account } of candidates)
      expect(account).toMatchObject({ requests: 0, contextTokens: 0, outputTokens: 0 });
  });

  it("does not send what would never fit, and counts it", () => {
    const workload = workloadOf([0, request({ promptTokens: 5_000 })], [1, request()]);
    const { requests, fates } = run({ fleet: smallFleet(2, 2_000), workload });
    expect(fates).toMatchObject({ oversized: 1, ended: 1 });
    expect(requests[0]).toMatchObject({ sentAtMs: undefined, endpoint: undefined });
  });

  it("samples the fleet over time", () => {
    const { timeline, requests } = run();
    expect(Object.keys(timeline.endpoints)).toEqual(["h100-1", "h100-2"]);
    const running = Object.values(timeline.endpoints).flat();
    expect(running.some((sample) => sample.running > 0 && sample.kvUsedRatio > 0)).toBe(true);
    expect(timeline.atMs.at(-1)).toBeLessThanOrEqual(Math.max(...requests.map(({ endedAtMs = 0 }) => endedAtMs)));
  });

  it("says how far it is", () => {
    const shares: number[] = [];
    run({ onProgress: (share) => shares.push(share) });
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(shares.at(-1)).toBeLessThanOrEqual(1);
    expect(shares.length).toBeGreaterThan(0);
  });

  it("measures real time when it has a clock for it", () => {
    let wallMs = 100;
    const wallClockMs = () => {
      wallMs += 40;
      return wallMs;
    };
    expect(run({ wallClockMs }).wallMs).toBe(40);
  });
});

describe("holding", () => {
  const oneEach = { hasRoom: (_request: RequestProfile, { account }: Candidate) => account.requests === 0 };
  const burst = workloadOf(...Array.from({ length: 20 }, (_, i) => [i, request({ promptTokens: 20 - i })] as const));

  it("sends what was held as soon as there is room, in the order of the policy", () => {
    const policy = policyOf({ ...oneEach, queueKey: ({ promptTokens }) => promptTokens });
    const { requests, fates } = run({ policy, workload: burst, whenFull: "hold" });
    expect(fates.ended).toBe(20);
    const held = requests.filter(({ arrivedAtMs, sentAtMs = 0 }) => sentAtMs > arrivedAtMs);
    expect(held).toHaveLength(18);
    const ends = new Set(requests.map(({ endedAtMs }) => endedAtMs));
    for (const { sentAtMs } of held) expect(ends).toContain(sentAtMs);
    const order = held
      .toSorted((a, b) => (a.sentAtMs ?? 0) - (b.sentAtMs ?? 0))
      .map(({ promptTokens }) => promptTokens);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  it("counts what is refused", () => {
    const { requests, fates } = run({ policy: policyOf(oneEach), workload: burst });
    expect(fates).toMatchObject({ ended: 2, refused: 18 });
    expect(requests.filter(({ sentAtMs }) => sentAtMs === undefined)).toHaveLength(18);
  });

  it("wakes the balancer when a request was held long enough", () => {
    const long = request({ outputTokens: 2_000 });
    const next = { thinkMs: 0, request: request() };
    const workload = workloadOf([0, long], [0, long], [0, request({ next })]);
    const holding = { maxRequests: 10, maxWaitMs: 500 };
    const { requests, fates } = run({ policy: policyOf(oneEach), workload, whenFull: "hold", holding });
    expect(fates).toMatchObject({ ended: 2, refused: 2 });
    // Its client goes on at the moment it is refused.
    expect(requests[3]?.arrivedAtMs).toBe(500);
  });
});

describe("a changing fleet", () => {
  const steady = workloadOf(
    ...Array.from({ length: 600 }, (_, i) => [100 * i, request({ outputTokens: 100 })] as const),
  );

  it("loses what had begun, sends the rest elsewhere, and spares who is down", () => {
    const events = parseFleetEvents("fail h100-1 at 20s, recover h100-1 at 40s", FLEET);
    const { requests, fates } = run({ workload: steady, events });
    expect(fates).toMatchObject({ refused: 0, unfinished: 0 });
    expect(fates.lost).toBeGreaterThan(0);
    expect(fates.lost + fates.ended).toBe(600);
    const sentTo = (id: string, fromMs: number, untilMs: number) =>
      requests.filter(({ endpoint, sentAtMs = 0 }) => endpoint === id && sentAtMs >= fromMs && sentAtMs < untilMs)
        .length;
    expect(sentTo("h100-1", 0, 20_000)).toBeGreaterThan(50);
    expect(sentTo("h100-1", 20_000, 40_000)).toBe(0);
    expect(sentTo("h100-1", 40_000, 60_000)).toBeGreaterThan(50);
    for (const { endedAtMs, firstTokenAtMs, sentAtMs = 0 } of requests) {
      if (endedAtMs !== undefined) continue;
      expect(firstTokenAtMs).toBeLessThanOrEqual(20_000);
      expect(sentAtMs).toBeLessThan(20_000);
    }
  });

  it("decides again on what is on its way to an endpoint that dies, and on what waits there", () => {
    const fleet = parseFleet("llama8b-h100,llama8b-h100");
    const policy = policyOf({
      choose: (_request, [first]) => ({ chosen: first, considered: [], reason: "the first" }),
    });
    const long = request({ promptTokens: 20_000 });
    const workload = workloadOf([0, long], [9, request()]);
    const events = parseFleetEvents("fail h100-1 at 10ms", fleet);
    const { requests, fates } = run({ fleet, policy, workload, events });
    expect(fates).toMatchObject({ ended: 2, lost: 0 });
    expect(requests.map(({ endpoint }) => endpoint)).toEqual(["h100-2", "h100-2"]);
  });

  it("loses what an engine had in its cache", () => {
    const fleet = parseFleet("llama8b-h100");
    const prompt = request({ promptTokens: 640, blockIds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] });
    const events = parseFleetEvents("fail h100-1 at 2s, recover h100-1 at 3s", fleet);
    const { requests } = run({ fleet, events, workload: workloadOf([0, prompt], [1_000, prompt], [4_000, prompt]) });
    expect(requests.map(({ cachedTokens }) => cachedTokens)).toEqual([0, 576, 0]);
  });

  it("refuses when nobody is left, and goes on", () => {
    const fleet = parseFleet("llama8b-h100");
    const events = parseFleetEvents("fail h100-1 at 20s, recover h100-1 at 40s", fleet);
    const { fates } = run({ fleet, workload: steady, events });
    expect(fates.refused).toBeGreaterThan(150);
    expect(fates.refused + fates.lost + fates.ended).toBe(600);
  });

  it("serves by whoever joins, from then on", () => {
    const events = parseFleetEvents("join 2*llama8b-h100 at 30s", FLEET);
    const { requests, timeline } = run({ workload: steady, events });
    const newcomers = requests.filter(({ endpoint }) => endpoint === "h100-3" || endpoint === "h100-4");
    expect(newcomers.length).toBeGreaterThan(100);
    for (const { sentAtMs } of newcomers) expect(sentAtMs).toBeGreaterThanOrEqual(30_000);
    expect(Object.keys(timeline.endpoints)).toHaveLength(4);
  });

  it("ends where held requests have nobody to go to", () => {
    const events = parseFleetEvents("fail h100-1 at 1ms, fail h100-2 at 1ms", FLEET);
    const holding = { maxRequests: Number.POSITIVE_INFINITY, maxWaitMs: Number.POSITIVE_INFINITY };
    const { fates } = run({ workload: workloadOf([10, request()]), events, whenFull: "hold", holding });
    expect(fates.refused + fates.unfinished).toBe(1);
  });
});

describe("every request", () => {
  const events = parseFleetEvents(
    "fail h100-1 at 5s, recover h100-1 at 9s, fail h100-2 at 12s, join llama8b-h100 at 15s",
    FLEET,
  );

  it.each([
    ["least_delay", {}],
    ["round_robin", {}],
    ["least_delay", { replicas: { count: 3, dealing: "in_turn" } }],
    [policyOf({ hasRoom: (_request, { account }) => account.requests < 3 }), { whenFull: "hold" }],
    [policyOf({ hasRoom: (_request, { account }) => account.requests < 3 }), { whenFull: "refuse" }],
  ] as const)("goes exactly one way, whatever happens to the fleet (%#)", (policy, options) => {
    const workload = syntheticWorkload(
      "synthetic:rate=40,requests=900,in=exp(1500),out=exp(150),turns=3,think=exp(1s),prefix=3x640",
    );
    const { requests, fates } = run({ policy, events, workload, ...options });
    expect(requests).toHaveLength(900);
    const { ended, refused, oversized, lost, unfinished } = fates;
    expect(ended + refused + oversized + lost + unfinished).toBe(900);
    expect(requests.filter(({ endedAtMs }) => endedAtMs !== undefined)).toHaveLength(ended);
    expect(unfinished).toBe(0);
  });
});

describe("several balancers", () => {
  it("deals requests in turn, and each sees its own alone", () => {
    const seen: number[] = [];
    const { choose } = policyOf().create({});
    const policy: PolicyDefinition = {
      ...policyOf(),
      create: () => {
        const replica = seen.push(0) - 1;
        return {
          choose: (...asked) => {
            seen[replica] = (seen[replica] ?? 0) + 1;
            return choose(...asked);
          },
        };
      },
    };
    expect(run({ policy, replicas: { count: 4, dealing: "in_turn" } }).fates.ended).toBe(400);
    expect(seen).toEqual([100, 100, 100, 100]);
  });

  it("lets them exchange at an interval, and acts on what that releases", () => {
    const exchanged: number[] = [];
    const policy = policyOf({ hasRoom: (_request, { account }) => account.requests < 2 });
    const replication: Replication = {
      begin: (balancers) => ({
        get nextAtMs() {
          return 200 * (exchanged.length + 1);
        },
        move(nowMs) {
          exchanged.push(nowMs);
          return balancers.flatMap((balancer) => balancer.tick(nowMs));
        },
      }),
    };
    const replicas = { count: 2, dealing: "by_session", replication } as const;
    const { fates } = run({ policy, whenFull: "hold", replicas });
    expect(fates.ended).toBe(400);
    expect(exchanged.slice(0, 3)).toEqual([200, 400, 600]);
  });
});
