import { describe, expect, it } from "vitest";
import { Balancer } from "./balancer.ts";
import type { Held, Release, Routed } from "./decision.ts";
import { type Endpoint, endpoint } from "./endpoint.ts";
import { requestProfile } from "./request.ts";

/** Room for one large request at a time. */
const A = endpoint({ id: "a", url: "http://a", kvCapacityTokens: 100_000 });
const B = endpoint({ id: "b", url: "http://b", kvCapacityTokens: 100_000 });
const SMALL = requestProfile({ promptTokens: 100 });
const LARGE = requestProfile({ promptTokens: 60_000 });

function balancerOf(policy: string, ...endpoints: readonly Endpoint[]): Balancer {
  return new Balancer({ policy, endpoints });
}

function routed(balancer: Balancer, request = SMALL): Routed {
  const decision = balancer.decide(request, 0);
  if (decision.kind !== "routed") throw new Error(decision.kind);
  return decision;
}

/** Requests sent until one is held. */
function untilHeld(balancer: Balancer): Held {
  for (let i = 0; i < 100; i++) {
    const decision = balancer.decide(LARGE, 0);
    if (decision.kind === "held") return decision;
  }
  throw new Error("none was held");
}

function targets(releases: readonly Release[]): readonly (string | undefined)[] {
  return releases.map(({ decision }) => (decision.kind === "routed" ? decision.endpoint.id : undefined));
}

describe("other rules", () => {
  it("are not taken on when one of them cannot be meant, and nothing else is", () => {
    const balancer = balancerOf("round_robin", A, B);
    for (const windowMs of [0, -1, Number.NaN]) {
      const change = { policy: "random", ejection: { windowMs } };
      expect(() => balancer.reconfigure(change, 0)).toThrow(`ejection: windowMs must be above 0, not ${windowMs}`);
      expect(() => new Balancer({ endpoints: [A], ejection: { windowMs } })).toThrow("windowMs");
    }
    expect(balancer.policyName).toBe("round_robin");
    expect(balancer.reconfigure({ ejection: { maxRatio: 0 } }, 0)).toEqual([]);
  });

  it("count for an endpoint that was away while they were taken on", () => {
    const balancer = balancerOf("round_robin", A);
    const { lease } = routed(balancer);
    balancer.setEndpoints([B], 0);
    balancer.reconfigure({ ejection: { failures: 1 } }, 0);
    balancer.setEndpoints([A, B], 0);
    balancer.observe({ kind: "failed", endpointId: "a", lease }, 0);
    expect(balancer.member("a")?.breaker.isOpen).toBe(true);
  });
});

describe("another policy", () => {
  it("decides what comes, by the work that is there", () => {
    const balancer = balancerOf("round_robin", A, B);
    const { endpoint: first } = routed(balancer);
    balancer.reconfigure({ policy: "least_connections" }, 0);
    expect(balancer.policyName).toBe("least_connections");
    expect(routed(balancer).endpoint.id).not.toBe(first.id);
    expect(balancer.members.map(({ account }) => account.requests)).toEqual([1, 1]);
  });

  it("releases whom the one of before held and it would not hold", () => {
    const balancer = balancerOf("least_delay", A, B);
    untilHeld(balancer);
    const before = balancer.heldRequests;
    const releases = balancer.reconfigure({ policy: "round_robin" }, 0);
    expect(releases).toHaveLength(before);
    expect(targets(releases)).not.toContain(undefined);
    expect(balancer.heldRequests).toBe(0);
  });

  it("holds what comes from then on, if it is one that does", () => {
    const balancer = balancerOf("round_robin", A, B);
    for (let i = 0; i < 10; i++) routed(balancer, LARGE);
    balancer.reconfigure({ policy: "least_delay" }, 0);
    expect(untilHeld(balancer).kind).toBe("held");
  });

  it("leaves everything as it is when there is none of this name", () => {
    const balancer = balancerOf("round_robin", A);
    expect(() => balancer.reconfigure({ policy: "fastest" }, 0)).toThrow(RangeError);
    expect(balancer.policyName).toBe("round_robin");
  });
});

describe("other bounds of the holding", () => {
  it("count for what comes; what is held already stays", () => {
    const balancer = balancerOf("least_delay", A);
    const { ticket } = untilHeld(balancer);
    expect(balancer.reconfigure({ holding: { maxRequests: 1 } }, 0)).toHaveLength(0);
    expect(balancer.decide(LARGE, 0)).toMatchObject({ kind: "refused" });
    expect(balancer.heldRequests).toBe(1);
    balancer.leave(ticket, 0);
    expect(balancer.decide(LARGE, 0)).toMatchObject({ kind: "held" });
  });
});

describe("membership", () => {
  it("knows what is known of a new endpoint before anything goes to it", () => {
    const balancer = balancerOf("least_delay", A);
    untilHeld(balancer);
    const held = balancer.heldRequests;
    const drained = { kind: "draining", endpointId: "b", isDraining: true } as const;
    expect(balancer.setEndpoints([A, B], 0, [drained])).toHaveLength(0);
    expect(balancer.heldRequests).toBe(held);
    expect(targets(balancer.observe({ ...drained, isDraining: false }, 0))).toContain("b");
  });

  it("takes an endpoint back as it was while something runs there, and anew once it was idle", () => {
    const balancer = balancerOf("round_robin", A);
    const { lease } = routed(balancer);
    const [before] = balancer.members;
    balancer.setEndpoints([B], 0);
    balancer.setEndpoints([A, B], 0);
    expect(balancer.members[0]).toBe(before);
    expect(before?.account.requests).toBe(1);
    balancer.finish(lease, { kind: "completed" }, 10);
    expect(before?.account.requests).toBe(0);
    balancer.setEndpoints([B], 20);
    balancer.setEndpoints([A, B], 20);
    expect(balancer.members[0]).not.toBe(before);
  });

  it("takes one back that was done while it was gone as a new one", () => {
    const balancer = balancerOf("round_robin", A);
    const { lease } = routed(balancer);
    const [before] = balancer.members;
    balancer.setEndpoints([B], 0);
    balancer.finish(lease, { kind: "completed" }, 10);
    balancer.setEndpoints([A, B], 20);
    expect(balancer.members[0]).not.toBe(before);
    expect(balancer.members[0]?.account.requests).toBe(0);
  });

  it("does not take another server for the one that left, but its work", () => {
    const balancer = balancerOf("round_robin", A);
    routed(balancer);
    const [before] = balancer.members;
    balancer.setEndpoints([B], 0);
    balancer.setEndpoints([{ ...A, url: "http://elsewhere" }], 0);
    expect(balancer.members[0]).not.toBe(before);
    expect(balancer.members[0]?.account.requests).toBe(1);
  });

  it("holds for an endpoint that came back as for any other", () => {
    const balancer = balancerOf("least_delay", A);
    untilHeld(balancer);
    balancer.setEndpoints([], 0);
    expect(balancer.heldRequests).toBe(0);
    balancer.setEndpoints([A], 0);
    const held = untilHeld(balancer);
    expect(balancer.members[0]?.held.requests).toBe(1);
    balancer.leave(held.ticket, 0);
    expect(balancer.members[0]?.held.requests).toBe(0);
  });
});
