import { describe, expect, it } from "vitest";
import { Desk, outcomesOf, requestOf } from "../../test/support/desk.ts";
import { times } from "../../test/support/fleet.ts";
import { Script } from "../../test/support/scripted-policy.ts";
import { endpoint } from "./endpoint.ts";
import type { Lease } from "./ledger.ts";
import { policyDefinitions } from "./policies/index.ts";

const NONE_HELD = { maxRequests: 0 };
const policies = policyDefinitions.map(({ name }) => name);

describe.each(policies)("an endpoint with a cap, under %s", (policy) => {
  it("takes as many as it may have, and again as many when these are given up, round after round", () => {
    const desk = new Desk(["a"], { policy, holding: NONE_HELD }, 2);
    const request = requestOf(10, { sessionKey: "s" });
    for (const round of times(20, (i) => i)) {
      desk.nowMs = 100 * round;
      const leases = times(2, () => desk.send(request));
      const refused = times(50, () => desk.balancer.decide(request, desk.nowMs));
      expect(new Set(refused.map((decision) => decision.kind === "refused" && decision.reason))).toEqual(
        new Set(["saturated"]),
      );
      expect(desk.member("a").account.requests).toBe(2);
      for (const lease of leases) {
        desk.firstToken(lease);
        for (const _ of "twice") desk.balancer.finish(lease, { kind: "aborted" }, desk.nowMs);
      }
      expect(desk.member("a").account.requests).toBe(0);
    }
  });

  it("has its place taken until the end of an answer, not until its beginning", () => {
    const desk = new Desk(["a"], { policy, whenFull: "hold" }, 1);
    const lease = desk.send(requestOf(10));
    const ticket = desk.hold(requestOf(10));
    expect(desk.firstToken(lease)).toEqual([]);
    desk.balancer.progress(lease, 50, 10);
    expect([desk.tick(), ticket.place === undefined]).toEqual([[], false]);
    expect(desk.finish(lease)).toEqual([[ticket, "a"]]);
  });

  it("is left out while another one has room, and says why", () => {
    const desk = new Desk(["a", "b"], { policy, holding: NONE_HELD }, 2);
    const request = requestOf(10, { sessionKey: "s" });
    for (const _ of "12") desk.pin("a", request);
    desk.pin("b");
    const decision = desk.balancer.decide(request, 0);
    expect(decision).toMatchObject({ kind: "routed", endpoint: { id: "b" } });
    expect(decision.explanation.excluded).toEqual([{ endpoint: "a", why: "no_room" }]);
  });
});

describe("endpoints that are all at their caps", () => {
  const late = (script: Script) => ({ policy: script.policy() });

  function capped(ids: readonly string[], script = new Script()) {
    const desk = new Desk(ids, late(script), 1);
    const leases = Object.fromEntries(ids.map((id) => [id, desk.pin(id)]));
    for (const id of ids) script.ready.add(id);
    return { script, desk, leaseAt: (id: string) => leases[id] as Lease };
  }

  it("have whoever binds late wait for the best of them, and go to whoever has room first", () => {
    const { script, desk, leaseAt } = capped(["a", "b"]);
    script.scores.a = -1;
    const [first, second] = [desk.hold(requestOf(100)), desk.hold(requestOf(200))];
    expect([first.place?.endpointId, second.place?.endpointId]).toEqual(["a", "a"]);
    expect(desk.finish(leaseAt("b"))).toEqual([[first, "b"]]);
    expect(desk.finish(leaseAt("a"))).toEqual([[second, "a"]]);
  });

  it("take those that were held elsewhere in their order, one for each place", () => {
    const { script, desk, leaseAt } = capped(["a", "b"]);
    script.scores.a = -1;
    const long = desk.hold(requestOf(900));
    Object.assign(script.scores, { a: 0, b: -1 });
    const short = desk.hold(requestOf(100));
    expect([long.place?.endpointId, short.place?.endpointId]).toEqual(["a", "b"]);
    expect(desk.finish(leaseAt("a"))).toEqual([[short, "a"]]);
    expect(desk.finish(leaseAt("b"))).toEqual([[long, "b"]]);
  });

  it("refuse whoever may not be held, though they could begin", () => {
    const script = new Script();
    const desk = new Desk(["a"], { ...late(script), holding: NONE_HELD }, 1);
    desk.pin("a");
    script.ready.add("a");
    expect(desk.balancer.decide(requestOf(1), 0)).toMatchObject({ kind: "refused", reason: "saturated" });
    expect(desk.balancer.explain(requestOf(1), 0)).toMatchObject({ chosen: undefined, wouldHold: false });
  });

  it("take more as soon as the caps are raised", () => {
    const { desk } = capped(["a"]);
    const held = times(3, (i) => desk.hold(requestOf(100 + i)));
    const releases = desk.balancer.setEndpoints([endpoint({ id: "a", maxRequests: 3 })], 0);
    expect(outcomesOf(releases)).toEqual(held.slice(0, 2).map((ticket) => [ticket, "a"]));
  });

  it("are served in their order where the policy has no lines of its own, whatever models they serve", () => {
    const desk = new Desk(["a", "b"], { policy: "least_connections", whenFull: "hold" }, 1);
    desk.observe({ kind: "models", endpointId: "a", models: new Set(["x"]) });
    desk.observe({ kind: "models", endpointId: "b", models: new Set(["y"]) });
    const [, atB] = [desk.send(requestOf(1, { model: "x" })), desk.send(requestOf(1, { model: "y" }))];
    const forA = times(2, () => desk.hold(requestOf(1, { model: "x" })));
    const forB = times(2, () => desk.hold(requestOf(1, { model: "y" })));
    // Those that wait for `a` came first, and are not in the way.
    expect(desk.finish(atB)).toEqual([[forB[0], "b"]]);
    expect(forA.map(({ place }) => place?.endpointId)).toEqual([undefined, undefined]);
  });

  it.each([0, -1, Number.NaN])("cannot have a cap of %s", (maxRequests) => {
    const { desk } = capped(["a"]);
    expect(() => desk.balancer.setEndpoints([endpoint({ id: "a", maxRequests })], 0)).toThrow("maxRequests");
  });
});
