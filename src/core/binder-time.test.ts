import { describe, expect, it } from "vitest";
import { busy, requestOf } from "../../test/support/desk.ts";
import { endpoint } from "./endpoint.ts";

/** Somebody is held for `a`, and `b` has something to do and could take more but for what the test says. */
function waitsForA(...[options]: [Parameters<typeof busy>[1]?]) {
  const front = busy(["a", "b"], options);
  const { script } = front;
  script.ready.add("b");
  Object.assign(script.scores, { a: 1, b: 0 });
  return front;
}

describe("with the passing of time alone", () => {
  it("whoever is held goes to an endpoint whose pause is over, though it is not idle", () => {
    const { desk, leaseAt } = waitsForA();
    desk.observe({ kind: "busy", endpointId: "b", lease: leaseAt("b"), retryAfterMs: 2000 });
    const ticket = desk.hold(requestOf(1));
    expect(ticket.place?.endpointId).toBe("a");
    expect(desk.balancer.nextWakeMs(0)).toBe(2000);
    desk.nowMs = 1999;
    expect(desk.tick()).toEqual([]);
    desk.nowMs = 2000;
    expect(desk.tick()).toEqual([[ticket, "b"]]);
  });

  it("whoever is held goes on trial to an endpoint whose ejection is over, though old work runs there", () => {
    const { desk, leaseAt } = waitsForA({ ejection: { failures: 1, baseMs: 3000 } });
    desk.pin("b");
    desk.observe({ kind: "failed", endpointId: "b", lease: leaseAt("b") });
    const [trial, next] = [desk.hold(requestOf(1)), desk.hold(requestOf(2))];
    expect(desk.balancer.nextWakeMs(0)).toBe(3000);
    desk.nowMs = 3000;
    expect(desk.tick()).toEqual([[trial, "b"]]);
    // A trial that does not end gives its place up.
    expect(desk.balancer.nextWakeMs(3000)).toBe(33_000);
    desk.nowMs = 33_000;
    expect(desk.tick()).toEqual([[next, "b"]]);
  });

  it("whoever is held goes to an endpoint that is warm, though it is not idle", () => {
    const { script, desk } = busy(["a"], { slowStartMs: 5000 });
    desk.balancer.setEndpoints(
      ["a", "b"].map((id) => endpoint({ id })),
      0,
    );
    script.ready.add("b");
    Object.assign(script.scores, { a: 1, b: 0 });
    desk.pin("b");
    expect(desk.send(requestOf(1)).endpointId).toBe("b");
    const ticket = desk.hold(requestOf(1));
    expect([ticket.place?.endpointId, desk.balancer.nextWakeMs(0)]).toEqual(["a", 5000]);
    desk.nowMs = 5000;
    expect(desk.tick()).toEqual([[ticket, "b"]]);
  });

  it("whoever is held goes to an endpoint where prefill is believed to be done, though it was held for another", () => {
    const { script, desk } = busy(["a", "b"]);
    script.ready.add("b");
    desk.pin("b", requestOf(1000, { isStreaming: false }));
    script.ready.delete("b");
    Object.assign(script.scores, { a: 0, b: 1 });
    const ticket = desk.hold(requestOf(1));
    Object.assign(script.scores, { a: 1, b: 0 });
    script.ready.add("b");
    expect(desk.tick()).toEqual([]);
    desk.nowMs = desk.balancer.nextWakeMs(0) ?? 0;
    expect(desk.tick()).toEqual([[ticket, "b"]]);
  });
});

describe("whoever is held for an endpoint that cannot begin", () => {
  it("goes elsewhere, though the first in its line cannot", () => {
    const { script, desk, leaseAt } = waitsForA();
    script.ready.delete("b");
    Object.assign(script.scores, { a: 0, b: 1 });
    const first = desk.hold(requestOf(1), ["b"]);
    const second = desk.hold(requestOf(2));
    Object.assign(script.scores, { a: 1, b: 0 });
    script.ready.add("b");
    expect(desk.firstToken(leaseAt("b"))).toEqual([[second, "b"]]);
    expect(first.place?.endpointId).toBe("a");
  });
});

describe("an endpoint that is not ejected any more because too many were", () => {
  it("is cold, and takes whoever is held", () => {
    const { script, desk, leaseAt } = busy(["a", "b", "c", "d"], { ejection: { failures: 1 }, slowStartMs: 5000 });
    script.ready.add("a");
    for (const id of ["a", "b"]) desk.observe({ kind: "failed", endpointId: id, lease: leaseAt(id) });
    for (const id of ["a", "b"]) expect(desk.member(id).breaker.isOpen).toBe(true);
    desk.finish(leaseAt("a"));
    const ticket = desk.hold(requestOf(1));
    expect(desk.observe({ kind: "draining", endpointId: "d", isDraining: true })).toEqual([[ticket, "a"]]);
    expect(desk.member("a").slowStart.warmthAt(0)).toBeLessThan(1);
  });
});
