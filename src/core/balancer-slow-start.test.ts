import { describe, expect, it } from "vitest";
import { busy } from "../../test/support/desk.ts";
import { Front } from "../../test/support/front.ts";
import type { Routed } from "./decision.ts";
import { endpoint } from "./endpoint.ts";
import { requestProfile } from "./request.ts";

const SLOW_START_MS = 30_000;
const OLD = [{ id: "a" }, { id: "b" }];

function withNewcomer(front: Front, id = "new"): void {
  const endpoints = [...front.balancer.members.map((member) => member.endpoint), endpoint({ id })];
  front.balancer.setEndpoints(endpoints, front.nowMs);
}

/** One request each `gapMs` that does not end, for `forMs`. @returns how many went to `id` in each second. */
function sendSteadily(front: Front, id: string, gapMs: number, forMs: number): number[] {
  const perSecond: number[] = [];
  for (const untilMs = front.nowMs + forMs; front.nowMs < untilMs; front.nowMs += gapMs) {
    const second = Math.floor((forMs - (untilMs - front.nowMs)) / 1_000);
    perSecond[second] = (perSecond[second] ?? 0) + (front.send().endpoint.id === id ? 1 : 0);
  }
  return perSecond;
}

/** The most that an endpoint among three may get in each second of 20 requests. */
function capOf(second: number): number {
  const warmth = 0.1 + (0.9 * (second + 1) * 1_000) / SLOW_START_MS;
  return (20 * warmth) / 3 + 2;
}

describe("an endpoint that comes cold", () => {
  const loaded = (): Front => {
    const front = new Front(OLD, { slowStartMs: SLOW_START_MS });
    for (let i = 0; i < 80; i++) front.send();
    return front;
  };

  it.each<[string, (front: Front) => void]>([
    ["new beside others that serve", (front) => withNewcomer(front)],
    [
      "from being down",
      (front) => {
        withNewcomer(front);
        for (const availability of ["down", "ready"] as const) {
          front.nowMs += 60_000;
          front.balancer.observe({ kind: "availability", endpointId: "new", availability }, front.nowMs);
        }
      },
    ],
    [
      "from being ejected",
      (front) => {
        withNewcomer(front);
        front.nowMs += 60_000;
        front.break("new");
        front.nowMs += 5_000;
        front.play("new", "succeeded");
      },
    ],
  ])("%s gets some at once, more each second, and never more than its share", (_, come) => {
    const front = loaded();
    come(front);
    const perSecond = sendSteadily(front, "new", 50, SLOW_START_MS);
    expect(perSecond[0]).toBeGreaterThanOrEqual(1);
    for (const [second, count] of perSecond.entries()) expect(count).toBeLessThanOrEqual(capOf(second));
    const total = perSecond.reduce((sum, count) => sum + count, 0);
    // Its share of 600 requests, a third, times the mean warmth of 0.55.
    expect(total).toBeGreaterThanOrEqual(105);
    expect(total).toBeLessThanOrEqual(112);
    sendSteadily(front, "new", 10, 10_000);
    const [a, b, fresh] = front.balancer.members.map(({ account }) => account.requests);
    expect(Math.max(a ?? 0, b ?? 0) - (fresh ?? 0)).toBeLessThanOrEqual(1);
  });

  it.each<[string, (front: Front) => void]>([
    ["all endpoints are new, given from the start", () => {}],
    [
      "all endpoints are new, given to a pool that was empty",
      (front) => {
        front.balancer.setEndpoints([], 0);
        front.nowMs = 100;
        front.balancer.setEndpoints(OLD.map(endpoint), front.nowMs);
      },
    ],
    [
      "all were down together",
      (front) => {
        for (const availability of ["down", "ready"] as const) {
          for (const { id } of OLD) front.balancer.observe({ kind: "availability", endpointId: id, availability }, 0);
        }
      },
    ],
  ])("is not held back where %s", (_, come) => {
    const front = new Front(OLD, { slowStartMs: SLOW_START_MS });
    come(front);
    expect(sendSteadily(front, "a", 100, 2_000)).toEqual([5, 5]);
  });

  it("is hardly held back beside one that came a moment before", () => {
    const front = new Front([], { slowStartMs: SLOW_START_MS });
    withNewcomer(front, "a");
    front.nowMs = 300;
    withNewcomer(front, "b");
    const [first] = sendSteadily(front, "b", 50, 1_000);
    expect(first).toBeGreaterThanOrEqual(9);
  });

  it("has its full share at once where nothing was said of slow starts", () => {
    const front = new Front(OLD);
    for (let i = 0; i < 80; i++) front.send();
    withNewcomer(front);
    expect(sendSteadily(front, "new", 100, 1_000)).toEqual([10]);
  });

  it("says why it gets no more, and is used when nobody else is left", () => {
    const front = loaded();
    withNewcomer(front);
    expect(front.send().endpoint.id).toBe("new");
    expect(front.seen()).toEqual({ a: "in", b: "in", new: "warming" });
    expect(front.send(["a", "b"]).endpoint.id).toBe("new");
    front.balancer.observe({ kind: "availability", endpointId: "a", availability: "down" }, 0);
    front.balancer.observe({ kind: "draining", endpointId: "b", isDraining: true }, 0);
    expect(front.seen()).toEqual({ a: "down", b: "draining", new: "in" });
  });

  it("earns its share only of requests that it could have", () => {
    const front = loaded();
    withNewcomer(front);
    front.balancer.observe({ kind: "models", endpointId: "new", models: new Set(["m"]) }, 0);
    expect(front.send([], requestProfile({ promptTokens: 10, model: "m" })).endpoint.id).toBe("new");
    for (let i = 0; i < 100; i++) front.send([], requestProfile({ promptTokens: 10, model: "n" }));
    expect(front.seen(requestProfile({ promptTokens: 10, model: "m" })).new).toBe("warming");
  });
});

describe("while requests are held", () => {
  it("a cold endpoint that is idle takes them one at a time", () => {
    const { script, desk } = busy(["a", "b"], { slowStartMs: SLOW_START_MS });
    script.scores.cold = -1;
    desk.balancer.setEndpoints(
      ["a", "b", "cold"].map((id) => endpoint({ id })),
      0,
    );
    const sent: Routed[] = [];
    const first = desk.balancer.decide(requestProfile({ promptTokens: 1 }), 0);
    if (first.kind === "routed") sent.push(first);
    expect(sent.map((routed) => routed.endpoint.id)).toEqual(["cold"]);
    const held = [1, 2, 3].map((promptTokens) => desk.hold(requestProfile({ promptTokens })));
    expect(desk.finish((sent[0] as Routed).lease)).toEqual([[held[0], "cold"]]);
    expect(desk.tick()).toEqual([]);
  });

  it("a cold endpoint that is idle takes the first that would have to wait", () => {
    const { script, desk } = busy(["a"], { slowStartMs: SLOW_START_MS });
    script.scores.cold = -1;
    desk.balancer.setEndpoints(
      ["a", "cold"].map((id) => endpoint({ id })),
      0,
    );
    desk.finish(desk.send(requestProfile({ promptTokens: 1 })));
    script.ready.add("a");
    expect(desk.send(requestProfile({ promptTokens: 1 })).endpointId).toBe("a");
    script.ready.delete("a");
    expect(desk.balancer.explain(requestProfile({ promptTokens: 1 }), 0).chosen?.id).toBe("cold");
    expect(desk.send(requestProfile({ promptTokens: 1 })).endpointId).toBe("cold");
  });

  it("they go as soon as a pause or an ejection is over", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.b = 1;
    desk.balancer.observe({ kind: "busy", endpointId: "a", lease: leaseAt("a"), retryAfterMs: 2_000 }, 0);
    expect(desk.finish(leaseAt("a"))).toEqual([]);
    const held = desk.hold(requestProfile({ promptTokens: 1 }));
    expect(desk.balancer.nextWakeMs(0)).toBe(2_000);
    desk.nowMs = 1_999;
    expect(desk.tick()).toEqual([]);
    desk.nowMs = 2_000;
    expect(desk.tick()).toEqual([[held, "a"]]);
  });
});
