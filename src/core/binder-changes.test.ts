import { describe, expect, it } from "vitest";
import { busy, COMPLETED, Desk, type Outcomes, outcomesOf, requestOf } from "../../test/support/desk.ts";
import { engineSignals } from "../../test/support/engine-signals.ts";
import { times } from "../../test/support/fleet.ts";
import type { Script } from "../../test/support/scripted-policy.ts";
import { endpoint } from "./endpoint.ts";

describe("time", () => {
  it("refuses whoever was held too long", () => {
    const { desk } = busy(["a"], { holding: { maxRequests: 10, maxWaitMs: 1000 } });
    const first = desk.hold(requestOf(900));
    desk.nowMs = 400;
    const second = desk.hold(requestOf(100));
    expect(desk.balancer.nextWakeMs(desk.nowMs)).toBe(1000);
    desk.nowMs = 999;
    expect(desk.tick()).toEqual([]);
    desk.nowMs = 1000;
    expect(desk.tick()).toEqual([[first, "queue_timeout"]]);
    expect(desk.balancer.nextWakeMs(desk.nowMs)).toBe(1400);
    desk.nowMs = 5000;
    expect(desk.tick()).toEqual([[second, "queue_timeout"]]);
    expect(desk.balancer.nextWakeMs(desk.nowMs)).toBeUndefined();
  });

  it("is told once: of fractions of a ms nobody is asked for again", () => {
    const { desk } = busy(["a"], { holding: { maxWaitMs: 3000 } });
    desk.nowMs = 1096.48;
    const ticket = desk.hold(requestOf(300));
    desk.nowMs = desk.balancer.nextWakeMs(desk.nowMs) ?? Number.NaN;
    expect(desk.tick()).toEqual([[ticket, "queue_timeout"]]);
  });

  it("counts from when a request came, however often it was moved", () => {
    const { script, desk, leaseAt } = busy(["a", "b"], { holding: { maxRequests: 10, maxWaitMs: 1000 } });
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(300));
    Object.assign(script.scores, { a: 0, b: -1 });
    script.ready.add("a");
    desk.nowMs = 800;
    desk.firstToken(leaseAt("a"));
    expect([ticket.place?.endpointId, desk.balancer.nextWakeMs(desk.nowMs)]).toEqual(["b", 1000]);
  });

  it("counts from when a request came first, though it was sent in between", () => {
    const { desk } = busy(["a"], { holding: { maxWaitMs: 1000 } });
    const decision = desk.balancer.decide(requestOf(300), 700, [], 0, 100);
    expect(decision).toMatchObject({ kind: "held", ticket: { arrivedAtMs: 100, heldAtMs: 700 } });
    expect(desk.balancer.nextWakeMs(700)).toBe(1100);
    expect(desk.balancer.decide(requestOf(300), 1200, [], 0, 200)).toMatchObject({ reason: "queue_timeout" });
  });

  it("refuses a request when its client's patience is over, where that is sooner", () => {
    const { desk } = busy(["a"], { holding: { maxWaitMs: 1000 } });
    const patient = desk.hold(requestOf(100, { patienceMs: 5000 }));
    const hasty = desk.hold(requestOf(100, { patienceMs: 200 }));
    expect(desk.balancer.nextWakeMs(0)).toBe(200);
    desk.nowMs = 200;
    expect(desk.tick()).toEqual([[hasty, "queue_timeout"]]);
    desk.nowMs = 1000;
    expect(desk.tick()).toEqual([[patient, "queue_timeout"]]);
  });

  it("says nothing where it alone does nothing", () => {
    const { desk } = busy(["a"], { holding: { maxWaitMs: Number.POSITIVE_INFINITY } });
    desk.hold(requestOf(100));
    expect(desk.balancer.nextWakeMs(0)).toBeUndefined();
  });

  it("makes an endpoint able to begin where the tokens of what runs there are not seen", () => {
    const desk = new Desk(["a"], { policy: "least_delay" });
    const unseen = requestOf(8000, { isStreaming: false });
    desk.send(unseen);
    const ticket = desk.hold(requestOf(8000));
    const wakeMs = desk.balancer.nextWakeMs(desk.nowMs) ?? Number.NaN;
    // 8,000 tokens of prefill by the prior, and a step.
    expect(Math.abs(wakeMs - 198)).toBeLessThan(2);
    desk.nowMs = wakeMs - 1;
    expect([desk.tick(), desk.balancer.nextWakeMs(desk.nowMs)]).toEqual([[], wakeMs]);
    desk.nowMs = wakeMs;
    expect(desk.tick()).toEqual([[ticket, "a"]]);
    expect(desk.balancer.nextWakeMs(desk.nowMs)).toBeUndefined();
  });

  it("changes nothing while nobody is held", () => {
    const desk = new Desk(["a"], { policy: "least_delay" });
    desk.send(requestOf(100, { isStreaming: false }));
    expect([desk.balancer.nextWakeMs(desk.nowMs), desk.balancer.tick(1e6)]).toEqual([undefined, []]);
  });
});

describe("an endpoint that somebody is held for", () => {
  const gone: [string, (desk: Desk) => Outcomes][] = [
    ["leaves", (desk) => outcomesOf(desk.balancer.setEndpoints([endpoint({ id: "b" })], desk.nowMs))],
    ["is down", (desk) => desk.observe({ kind: "availability", endpointId: "a", availability: "down" })],
    ["is loading", (desk) => desk.observe({ kind: "availability", endpointId: "a", availability: "loading" })],
    ["drains", (desk) => desk.observe({ kind: "draining", endpointId: "a", isDraining: true })],
    ["serves other models", (desk) => desk.observe({ kind: "models", endpointId: "a", models: new Set(["x"]) })],
    [
      "gets weight 0",
      (desk) => {
        const endpoints = [endpoint({ id: "a", weight: 0 }), endpoint({ id: "b" })];
        return outcomesOf(desk.balancer.setEndpoints(endpoints, desk.nowMs));
      },
    ],
  ];
  const request = requestOf(300, { model: "m" });

  it.each(gone)("and %s: the request is held for another", (_, go) => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(request);
    expect(go(desk)).toEqual([]);
    expect([ticket.place?.endpointId, desk.balancer.heldRequests]).toEqual(["b", 1]);
    desk.finish(leaseAt("a"));
    expect(desk.finish(leaseAt("b"))).toEqual([[ticket, "b"]]);
  });

  it.each(gone)("and %s: the request goes to another that can begin", (_, go) => {
    const { script, desk } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(request);
    script.ready.add("b");
    expect(go(desk)).toEqual([[ticket, "b"]]);
  });

  it.each(gone)("and %s: the request is refused where no other can serve it", (_, go) => {
    const { script, desk } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(request, ["b"]);
    expect(go(desk)).toEqual([[ticket, "exhausted"]]);
    expect([desk.balancer.heldRequests, ticket.place]).toEqual([0, undefined]);
  });

  it("and becomes another server: what is held goes when the work of the old one is done", () => {
    const { desk, leaseAt } = busy(["a"]);
    const ticket = desk.hold(request);
    expect(desk.balancer.setEndpoints([endpoint({ id: "a", url: "http://new" })], 0)).toEqual([]);
    const [release] = desk.balancer.finish(leaseAt("a"), COMPLETED, 10);
    expect(release).toMatchObject({ ticket, decision: { kind: "routed", endpoint: { url: "http://new" } } });
  });

  it("and restarts: the request is weighed again", () => {
    const { script, desk } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(request);
    script.scores.b = -2;
    expect(desk.observe({ kind: "restarted", endpointId: "a" })).toEqual([]);
    expect(ticket.place?.endpointId).toBe("b");
  });

  it("and reports more room: whoever can begin by that goes", () => {
    const desk = new Desk(["a"], { policy: "least_delay" });
    desk.observe({ kind: "signals", endpointId: "a", signals: engineSignals({ maxRunningRequests: 1 }) });
    const lease = desk.send(requestOf(100));
    desk.firstToken(lease);
    const ticket = desk.hold(requestOf(100));
    const signals = engineSignals({ maxRunningRequests: 2 });
    expect(desk.observe({ kind: "signals", endpointId: "a", signals })).toEqual([[ticket, "a"]]);
  });

  it("and reports its metrics: nothing changes", () => {
    const { script, desk } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(request);
    script.scores.b = -2;
    expect(desk.observe({ kind: "signals", endpointId: "a", signals: engineSignals() })).toEqual([]);
    expect(ticket.place?.endpointId).toBe("a");
  });

  it("returns, or is new: it takes who may be served by it, to have something to do", () => {
    const { desk } = busy(["a"]);
    const [first, second] = [desk.hold(requestOf(100)), desk.hold(requestOf(200))];
    const endpoints = [endpoint({ id: "a" }), endpoint({ id: "new" })];
    const outcomes = outcomesOf(desk.balancer.setEndpoints(endpoints, 0));
    expect(outcomes.map(([ticket]) => ticket)).toEqual([first, second].slice(0, outcomes.length));
    expect(desk.member("new").account.requests).toBeGreaterThan(0);
  });

  it("left with nobody held for it: the end of what runs there releases nobody", () => {
    const { desk, leaseAt } = busy(["a", "b"]);
    desk.balancer.setEndpoints([endpoint({ id: "b" })], 0);
    const ticket = desk.hold(requestOf(100));
    expect(desk.finish(leaseAt("a"))).toEqual([]);
    expect(ticket.place?.endpointId).toBe("b");
  });
});

describe("an endpoint that has nothing to do", () => {
  it("makes whoever it could take go to the best one, until it has something", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const held = times(3, (i) => desk.hold(requestOf(100 + i)));
    const outcomes = desk.finish(leaseAt("b"));
    expect(outcomes).toEqual(held.map((ticket) => [ticket, "a"]));
  });

  it("leaves those waiting that it cannot take", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(100), ["b"]);
    expect(desk.finish(leaseAt("b"))).toEqual([]);
    expect(ticket.place?.endpointId).toBe("a");
  });

  it("has what is held for others as soon as time is told, when another balancer's work there has ended", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    desk.balancer.adopt("other", sharedBy(["b"], script), 0);
    script.scores.a = -1;
    desk.finish(leaseAt("b"));
    const ticket = desk.hold(requestOf(100));
    expect(outcomesOf(desk.balancer.adopt("other", undefined, 10))).toEqual([[ticket, "a"]]);
  });
});

/** What a balancer says that has one request in flight on each of `ids`. */
function sharedBy(ids: readonly string[], script: Script) {
  const other = new Desk(ids, { policy: script.policy() });
  for (const id of ids) other.pin(id);
  return other.balancer.share(0);
}
