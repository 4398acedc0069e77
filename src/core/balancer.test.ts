import { describe, expect, it } from "vitest";
import { routedNow as routed } from "../../test/support/decisions.ts";
import { engineSignals } from "../../test/support/engine-signals.ts";
import { type Balancer, createBalancer } from "./balancer.ts";
import type { Outcome } from "./decision.ts";
import { endpoint } from "./endpoint.ts";
import { type Random, seededRandom } from "./random.ts";
import { requestProfile } from "./request.ts";

const COMPLETED: Outcome = { kind: "completed" };

function balancerOf(ids: readonly string[], policy = "least_connections", random?: Random): Balancer {
  return createBalancer({
    policy,
    endpoints: ids.map((id) => endpoint({ id })),
    ...(random !== undefined && { random }),
  });
}

function memberOf(balancer: Balancer, id: string) {
  const found = balancer.members.find(({ endpoint }) => endpoint.id === id);
  if (found === undefined) throw new RangeError(id);
  return found;
}

const chat = requestProfile({ promptTokens: 1000, expectedOutputTokens: 100 });

describe("a decision", () => {
  it("chooses and opens the lease in one step", () => {
    const balancer = balancerOf(["a", "b"]);
    const { endpoint: chosen, lease, explanation } = routed(balancer, chat, 10);
    expect(lease).toMatchObject({ endpointId: chosen.id, isOpen: true, openedAtMs: 10 });
    expect(memberOf(balancer, chosen.id).account.requests).toBe(1);
    expect(explanation.policy).toBe("least_connections");
    expect(explanation.considered.map(({ endpoint: id }) => id)).toEqual(["a", "b"]);
    expect(explanation.excluded).toEqual([]);
  });

  it("leaves out what was tried and says so", () => {
    const balancer = balancerOf(["a", "b"]);
    const { endpoint: chosen, explanation } = routed(balancer, chat, 0, ["a"]);
    expect(chosen.id).toBe("b");
    expect(explanation.excluded).toEqual([{ endpoint: "a", why: "tried" }]);
  });

  it("spreads requests over endpoints that are all idle, however the list is ordered", () => {
    const balancer = balancerOf(["a", "b", "c", "d"], "least_delay");
    const counts = new Map<string, number>();
    for (let i = 0; i < 4000; i++) {
      const { lease } = routed(balancer, chat, i * 60_000);
      counts.set(lease.endpointId, (counts.get(lease.endpointId) ?? 0) + 1);
      balancer.finish(lease, COMPLETED, i * 60_000);
    }
    // Binomial with mean 1,000 and standard deviation 27: five of them.
    for (const id of ["a", "b", "c", "d"]) expect(Math.abs((counts.get(id) ?? 0) - 1000)).toBeLessThan(137);
  });

  it("is the same for the same calls and seed", () => {
    const run = (): string[] => {
      const balancer = balancerOf(["a", "b", "c"], "power_of_two", seededRandom(4));
      return Array.from({ length: 50 }, (_, i) => routed(balancer, chat, i).endpoint.id);
    };
    expect(run()).toEqual(run());
  });

  it("sends a prompt to where its start was sent before, and counts only the rest of it", () => {
    const balancer = balancerOf(["a", "b", "c"], "least_delay");
    const prefix = { hashes: Array.from({ length: 50 }, (_, i) => i), tokensPerBlock: 64 };
    const turn = requestProfile({ promptTokens: 3300, prefix });
    const first = routed(balancer, turn, 0);
    balancer.finish(first.lease, COMPLETED, 5000);
    const second = routed(balancer, turn, 60_000);
    expect(second.endpoint.id).toBe(first.endpoint.id);
    expect(second.lease.cost.prefillTokens).toBe(100);
  });
});

describe("a refusal", () => {
  it.each<[string, (balancer: Balancer) => void, string]>([
    ["an empty pool", (balancer) => balancer.setEndpoints([], 0), "no_endpoint"],
    [
      "draining endpoints",
      (balancer) => balancer.observe({ kind: "draining", endpointId: "a", isDraining: true }, 0),
      "no_endpoint",
    ],
    [
      "endpoints that are down",
      (balancer) => balancer.observe({ kind: "availability", endpointId: "a", availability: "down" }, 0),
      "unavailable",
    ],
    [
      "endpoints of other models",
      (balancer) => balancer.observe({ kind: "models", endpointId: "a", models: new Set(["other"]) }, 0),
      "model_not_served",
    ],
  ])("of %s", (_, prepare, reason) => {
    const balancer = balancerOf(["a"]);
    prepare(balancer);
    const decision = balancer.decide({ ...chat, model: "m" }, 0);
    expect(decision).toMatchObject({ kind: "refused", reason, retryAfterMs: 1000 });
    expect(decision.explanation.considered).toEqual([]);
  });

  it("says exhausted when each was tried, saturated when the policy has no room", () => {
    const balancer = createBalancer({
      policy: "token_aware",
      policyOptions: { horizonSeconds: 1 },
      endpoints: [endpoint({ id: "a", tokensPerSecond: 100 })],
    });
    expect(balancer.decide(chat, 0, ["a"])).toMatchObject({ reason: "exhausted" });
    routed(balancer, chat, 0);
    expect(balancer.decide(chat, 0)).toMatchObject({
      reason: "saturated",
      explanation: { excluded: [{ endpoint: "a", why: "no_room" }] },
    });
  });

  it("of a full pool shows each load against the line, and only of those that lack nothing but room", () => {
    const balancer = createBalancer({
      policy: "token_aware",
      policyOptions: { horizonSeconds: 1 },
      endpoints: ["a", "b", "down"].map((id) => endpoint({ id, tokensPerSecond: 100 })),
    });
    balancer.observe({ kind: "availability", endpointId: "down", availability: "down" }, 0);
    routed(balancer, chat, 0);
    routed(balancer, chat, 0);
    const { chosen, explanation } = balancer.explain(chat, 0);
    expect([chosen, explanation.reason]).toEqual([undefined, "no endpoint has room"]);
    // 100 tokens and a tenth of 1,000 that wait, at 100 a second.
    expect(explanation.considered.map(({ terms }) => terms?.load)).toEqual([2, 2]);
    expect(balancer.decide(chat, 0)).toMatchObject({ kind: "refused", reason: "saturated", explanation });
  });

  it("owns nothing: room is back as soon as the requests that have it end, round after round", () => {
    const balancer = createBalancer({
      policy: "token_aware",
      policyOptions: { horizonSeconds: 1 },
      endpoints: [endpoint({ id: "a", tokensPerSecond: 210 })],
    });
    for (let round = 0; round < 20; round++) {
      const leases = [routed(balancer, chat, round).lease];
      for (let i = 0; i < 50; i++) {
        const decision = balancer.decide(chat, round);
        if (decision.kind === "routed") leases.push(decision.lease);
      }
      expect(leases).toHaveLength(1);
      for (const lease of leases) balancer.finish(lease, { kind: "aborted" }, round);
      expect(memberOf(balancer, "a").account.requests).toBe(0);
    }
  });

  it.each([
    // output tokens in flight, tokens per second, retry after
    [10, 1000, 1000],
    [20_000, 1000, 20_000],
    [1_000_000, 10, 60_000],
    [0, 10, 1000],
  ])("with %d tokens in flight at %d a second tells to come back in %d ms", (tokens, tokensPerSecond, retryAfterMs) => {
    const balancer = createBalancer({
      policy: "least_connections",
      endpoints: [endpoint({ id: "a", tokensPerSecond }), endpoint({ id: "b", weight: 0 })],
    });
    routed(balancer, requestProfile({ promptTokens: 1, expectedOutputTokens: tokens }), 0);
    balancer.observe({ kind: "draining", endpointId: "a", isDraining: true }, 0);
    expect(balancer.decide(chat, 0)).toMatchObject({ kind: "refused", retryAfterMs });
  });
});

describe("explain", () => {
  it.each(["least_delay", "random", "power_of_two", "round_robin", "weighted_round_robin"])(
    "under %s says what decide then does, and changes nothing",
    (policy) => {
      const explained = balancerOf(["a", "b", "c", "d"], policy, seededRandom(2));
      const plain = balancerOf(["a", "b", "c", "d"], policy, seededRandom(2));
      const brief = requestProfile({ promptTokens: 10, expectedOutputTokens: 100 });
      for (let i = 0; i < 200; i++) {
        const foretold = explained.explain(brief, i);
        expect(explained.explain(brief, i)).toEqual(foretold);
        const decided = routed(explained, brief, i);
        expect(decided.endpoint).toEqual(foretold.chosen);
        expect(decided.explanation).toEqual(foretold.explanation);
        expect(routed(plain, brief, i).endpoint).toEqual(decided.endpoint);
      }
    },
  );

  it("chooses nothing where decide would refuse", () => {
    const balancer = balancerOf([]);
    expect(balancer.explain(chat, 0)).toMatchObject({ chosen: undefined, explanation: { considered: [] } });
  });
});

describe("a request in flight", () => {
  it("moves the account from waiting to running to nothing", () => {
    const balancer = balancerOf(["a"]);
    const { account } = memberOf(balancer, "a");
    const { lease } = routed(balancer, chat, 0);
    balancer.progress(lease, 5, 1);
    expect([account.waitingRequests, account.runningRequests, lease.generatedTokens]).toEqual([1, 0, 0]);
    balancer.firstToken(lease, 100);
    balancer.firstToken(lease, 200);
    balancer.progress(lease, 9, 300);
    expect([account.waitingRequests, account.runningRequests]).toEqual([0, 1]);
    expect([lease.generatedTokens, lease.firstTokenAtMs]).toEqual([10, 100]);
    balancer.finish(lease, COMPLETED, 400);
    balancer.finish(lease, COMPLETED, 500);
    balancer.firstToken(lease, 600);
    balancer.progress(lease, 5, 700);
    expect([account.requests, account.outputTokens, account.contextTokens]).toEqual([0, 0, 0]);
  });

  it("teaches output lengths and prompt ratios when it is completed, and neither when it is cut", () => {
    const balancer = balancerOf(["a"]);
    const request = requestProfile({ promptTokens: 1000, textBytes: 4000, model: "m", route: "chat" });
    const run = (kind: Outcome["kind"]): void => {
      for (let i = 0; i < 500; i++) {
        const { lease } = routed(balancer, request, i);
        balancer.finish(lease, { kind, promptTokens: 2000, outputTokens: 20 }, i);
      }
    };
    run("aborted");
    run("failed");
    expect([balancer.outputLengths.expect(request).meanTokens, balancer.promptRatios.ratio("m")]).toEqual([256, 4]);
    run("completed");
    expect(balancer.outputLengths.expect(request).meanTokens).toBeLessThan(40);
    expect(balancer.promptRatios.ratio("m")).toBeLessThan(2.1);
  });

  it("teaches nothing that the engine did not say, nor a ratio where the prompt was more than text", () => {
    const balancer = balancerOf(["a"]);
    const request = requestProfile({ promptTokens: 1000, model: "m" });
    balancer.finish(routed(balancer, request, 0).lease, COMPLETED, 1);
    balancer.finish(routed(balancer, request, 0).lease, { kind: "completed", promptTokens: 9000 }, 1);
    expect([balancer.outputLengths.expect(request).meanTokens, balancer.promptRatios.ratio("m")]).toEqual([256, 4]);
  });

  it("teaches prefill by its end when it generates nothing", () => {
    const balancer = balancerOf(["a"]);
    const { speed, account } = memberOf(balancer, "a");
    const embedding = requestProfile({ promptTokens: 4000, expectedOutputTokens: 0, isStreaming: false });
    for (let i = 1; i <= 20; i++) {
      const { lease } = routed(balancer, embedding, i * 10_000);
      balancer.tick(i * 10_000 + 400);
      expect(lease.isRunning).toBe(false);
      balancer.finish(lease, { ...COMPLETED, outputTokens: 0 }, i * 10_000 + 450);
    }
    // The prior takes 89 ms.
    expect(speed.prefillScale).toBeGreaterThan(4.5);
    expect(speed.prefillScale).toBeLessThan(5.5);
    expect(account.requests).toBe(0);
    expect(balancer.outputLengths.expect(embedding).meanTokens).toBe(256);
  });
});

describe("a request whose tokens are not seen", () => {
  const whole = requestProfile({ promptTokens: 2000, expectedOutputTokens: 300, isStreaming: false });
  const PREFILL_MS = 43;
  const STEP_MS = 7.3;

  it("is projected through prefill and decoding at its endpoint's speed", () => {
    const balancer = balancerOf(["a"]);
    const { lease } = routed(balancer, whole, 1000);
    balancer.tick(1000 + PREFILL_MS - 5);
    expect(lease.isRunning).toBe(false);
    balancer.tick(1000 + PREFILL_MS + 20);
    expect(lease.isRunning).toBe(true);
    balancer.tick(1000 + PREFILL_MS + 101 * STEP_MS);
    expect(Math.abs(lease.generatedTokens - 101)).toBeLessThan(4);
    expect(lease.remainingTokens).toBe(300 - lease.generatedTokens);
  });

  it("comes to the same in one step of time as in many", () => {
    const projected = (everyMs: number): number => {
      const balancer = balancerOf(["a"]);
      const { lease } = routed(balancer, whole, 0);
      for (let nowMs = 0; nowMs <= 1500; nowMs += everyMs) balancer.tick(nowMs);
      return lease.generatedTokens;
    };
    expect(Math.abs(projected(1500) - projected(1))).toBeLessThan(2);
  });

  it("waits behind what waited before it, and is not held back by what comes after", () => {
    const balancer = balancerOf(["a"]);
    const first = routed(balancer, whole, 0).lease;
    const second = routed(balancer, whole, 0).lease;
    balancer.tick(PREFILL_MS + 10);
    expect([first.isRunning, second.isRunning]).toEqual([true, false]);
    for (let nowMs = 20; nowMs < 200; nowMs += 20) {
      const { lease } = routed(balancer, requestProfile({ promptTokens: 1 }), nowMs);
      balancer.firstToken(lease, nowMs + 10);
    }
    balancer.tick(200);
    expect(second.isRunning).toBe(true);
  });

  it("is never projected past the client's bound", () => {
    const balancer = balancerOf(["a"]);
    const { lease } = routed(balancer, { ...whole, maxOutputTokens: 50 }, 0);
    balancer.tick(60_000);
    expect(lease.generatedTokens).toBe(50);
    balancer.tick(120_000);
    expect(lease.generatedTokens).toBe(50);
  });

  it("teaches decoding by its length when it is completed, whether or not it was projected", () => {
    for (const isProjected of [true, false]) {
      const balancer = balancerOf(["a"]);
      for (let i = 0; i < 30; i++) {
        const nowMs = i * 100_000;
        const { lease } = routed(balancer, whole, nowMs);
        if (isProjected) balancer.tick(nowMs + 1000);
        balancer.finish(lease, { kind: "completed", outputTokens: 300 }, nowMs + 10 * (PREFILL_MS + 300 * STEP_MS));
      }
      const { decodeScale } = memberOf(balancer, "a").speed;
      expect(Math.abs(Math.log(decodeScale / 10))).toBeLessThan(0.05);
    }
  });

  it("teaches nothing when it is cut or too short", () => {
    const balancer = balancerOf(["a"]);
    balancer.finish(routed(balancer, whole, 0).lease, { kind: "aborted", outputTokens: 300 }, 9000);
    balancer.finish(routed(balancer, whole, 0).lease, { kind: "completed", outputTokens: 3 }, 9000);
    balancer.finish(routed(balancer, whole, 0).lease, COMPLETED, 9000);
    expect(memberOf(balancer, "a").speed.samples).toBe(0);
  });

  it("takes a token for what it is when one is seen after all", () => {
    const balancer = balancerOf(["a"]);
    const { lease } = routed(balancer, whole, 0);
    balancer.firstToken(lease, 30);
    balancer.progress(lease, 4, 60);
    expect([lease.firstTokenAtMs, lease.generatedTokens]).toEqual([30, 5]);
  });
});

describe("an observation", () => {
  const prefix = { hashes: [1, 2, 3, 4], tokensPerBlock: 64 };
  const warm = (): Balancer => {
    const balancer = balancerOf(["a"]);
    const { lease } = routed(balancer, requestProfile({ promptTokens: 256, prefix }), 0);
    balancer.finish(lease, COMPLETED, 1);
    routed(balancer, requestProfile({ promptTokens: 1 }), 2);
    return balancer;
  };

  it.each<[string, Parameters<Balancer["observe"]>[0], number]>([
    ["down", { kind: "availability", endpointId: "a", availability: "down" }, 0],
    ["loading", { kind: "availability", endpointId: "a", availability: "loading" }, 0],
    ["restarted", { kind: "restarted", endpointId: "a" }, 0],
    ["ready", { kind: "availability", endpointId: "a", availability: "ready" }, 4],
    ["draining", { kind: "draining", endpointId: "a", isDraining: true }, 4],
    ["of no cache size", { kind: "signals", endpointId: "a", signals: engineSignals() }, 4],
    ["of an endpoint that left", { kind: "restarted", endpointId: "gone" }, 4],
  ])("%s leaves %d blocks believed cached", (_, observation, blocks) => {
    const balancer = warm();
    balancer.observe(observation, 10);
    expect(memberOf(balancer, "a").mirror.size).toBe(blocks);
  });

  it("of a smaller cache leaves as many blocks as have room in it, from the next request on", () => {
    const balancer = warm();
    const signals = engineSignals({ kvCapacityTokens: 150 });
    balancer.observe({ kind: "signals", endpointId: "a", signals }, 10);
    balancer.finish(routed(balancer, requestProfile({ promptTokens: 1 }), 20).lease, { kind: "failed" }, 30);
    expect(memberOf(balancer, "a").mirror.size).toBe(2);
  });

  it("never touches the work in flight", () => {
    const balancer = warm();
    const { account } = memberOf(balancer, "a");
    for (let i = 0; i < 30; i++) {
      for (const availability of ["down", "ready"] as const) {
        balancer.observe({ kind: "availability", endpointId: "a", availability }, 0);
        expect(account.requests).toBe(1);
      }
      balancer.observe({ kind: "restarted", endpointId: "a" }, 0);
    }
    expect(account.requests).toBe(1);
  });
});

describe("construction", () => {
  it("defaults to least_delay", () => {
    expect(createBalancer({ endpoints: [] }).policyName).toBe("least_delay");
  });

  it("refuses an unknown policy and options that do not fit", () => {
    expect(() => balancerOf(["a"], "no_such")).toThrow("least_delay");
    expect(() => createBalancer({ policy: "random", policyOptions: { nonsense: 1 }, endpoints: [] })).toThrow(
      RangeError,
    );
  });
});
