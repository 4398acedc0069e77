import { describe, expect, it } from "vitest";
import { COMPLETED, Desk, outcomesOf, requestOf } from "../../test/support/desk.ts";
import { times } from "../../test/support/fleet.ts";
import { Script } from "../../test/support/scripted-policy.ts";
import type { Lease } from "./ledger.ts";
import { requestProfile } from "./request.ts";

describe("a pool whose policy has room nowhere", () => {
  function full(ids: readonly string[], whenFull: "refuse" | "hold" = "hold") {
    const script = new Script();
    const policy = script.policy({ isLate: false, isBounded: true });
    const desk = new Desk(ids, { policy, whenFull, holding: { maxRequests: 3, maxWaitMs: 1000 } });
    const leases = Object.fromEntries(ids.map((id) => [id, desk.pin(id)]));
    for (const id of ids) script.full.add(id);
    return { script, desk, leaseAt: (id: string) => leases[id] as Lease };
  }

  it("refuses by default", () => {
    const { desk } = full(["a"], "refuse");
    expect(desk.balancer.decide(requestOf(1), 0)).toMatchObject({ kind: "refused", reason: "saturated" });
  });

  it("holds in one line for all endpoints, in the order of the policy's key, until there is room", () => {
    const { script, desk, leaseAt } = full(["a", "b"]);
    const [long, short] = [desk.hold(requestOf(900)), desk.hold(requestOf(100))];
    expect([long.place?.endpointId, short.place?.endpointId]).toEqual([undefined, undefined]);
    expect(desk.firstToken(leaseAt("a"))).toEqual([]);
    script.full.delete("b");
    expect(desk.firstToken(leaseAt("b"))).toEqual([
      [short, "b"],
      [long, "b"],
    ]);
  });

  it("holds whoever comes after those who wait, and sends who goes before them", () => {
    const { script, desk } = full(["a"]);
    const first = desk.hold(requestOf(500));
    script.full.delete("a");
    const second = desk.hold(requestOf(600));
    expect(desk.send(requestOf(400)).endpointId).toBe("a");
    expect(desk.tick()).toEqual([
      [first, "a"],
      [second, "a"],
    ]);
  });

  it("holds nobody behind those who wait for others, while an endpoint has nothing to do", () => {
    const { script, desk, leaseAt } = full(["a", "b"]);
    desk.observe({ kind: "models", endpointId: "a", models: new Set(["x"]) });
    desk.observe({ kind: "models", endpointId: "b", models: new Set(["y"]) });
    const forA = desk.hold(requestOf(1, { model: "x" }));
    const forB = desk.hold(requestOf(2, { model: "y" }));
    script.full.delete("b");
    const [release] = desk.balancer.finish(leaseAt("b"), COMPLETED, 0);
    expect(release).toMatchObject({ ticket: forB, decision: { endpoint: { id: "b" } } });
    if (release?.decision.kind === "routed") desk.finish(release.decision.lease);
    expect(desk.send(requestOf(3, { model: "y" })).endpointId).toBe("b");
    expect(forA.place).toBeDefined();
  });

  it("holds nobody behind those who wait for others, though its own endpoints have something to do", () => {
    const { script, desk, leaseAt } = full(["a", "b"]);
    desk.observe({ kind: "models", endpointId: "a", models: new Set(["x"]) });
    desk.observe({ kind: "models", endpointId: "b", models: new Set(["y"]) });
    const forA = desk.hold(requestOf(1, { model: "x" }));
    const forB = desk.hold(requestOf(2, { model: "y" }));
    script.full.delete("b");
    expect(desk.send(requestOf(1, { model: "y" })).endpointId).toBe("b");
    expect(desk.firstToken(leaseAt("b"))).toEqual([[forB, "b"]]);
    expect(desk.send(requestOf(3, { model: "y" })).endpointId).toBe("b");
    expect(forA.place).toBeDefined();
  });

  it("sends those who are alike in their order when an endpoint changes, and looks past those who wait on", () => {
    const { script, desk } = full(["a", "b"]);
    desk.observe({ kind: "models", endpointId: "a", models: new Set(["x"]) });
    desk.observe({ kind: "models", endpointId: "b", models: new Set(["y"]) });
    const forA = desk.hold(requestOf(1, { model: "x" }));
    const forB = [desk.hold(requestOf(2, { model: "y" })), desk.hold(requestOf(3, { model: "y" }))];
    script.full.delete("b");
    expect(desk.observe({ kind: "restarted", endpointId: "a" })).toEqual(forB.map((ticket) => [ticket, "b"]));
    expect(forA.place).toBeDefined();
  });

  it("sends who is next when the first leaves and there is room for the next", () => {
    const { script, desk } = full(["a"]);
    const [first, second] = [desk.hold(requestOf(1)), desk.hold(requestOf(2))] as const;
    script.full.delete("a");
    expect(outcomesOf(desk.balancer.leave(first, 0))).toEqual([[second, "a"]]);
  });

  it("refuses whoever waits when its last endpoint leaves", () => {
    const { desk } = full(["a"]);
    const ticket = desk.hold(requestOf(1));
    expect(outcomesOf(desk.balancer.setEndpoints([], 0))).toEqual([[ticket, "no_endpoint"]]);
  });

  it("refuses whoever it cannot hold, or has held too long", () => {
    const { desk } = full(["a"]);
    const held = times(3, (i) => desk.hold(requestOf(i)));
    expect(desk.balancer.decide(requestOf(1), 0)).toMatchObject({ kind: "refused", reason: "queue_full" });
    desk.nowMs = 1000;
    expect(desk.tick()).toEqual(held.map((ticket) => [ticket, "queue_timeout"]));
  });

  it("refuses for any other reason at once, and whoever waits when that reason comes up", () => {
    const { desk } = full(["a"]);
    expect(desk.balancer.decide(requestOf(1), 0, ["a"])).toMatchObject({ kind: "refused", reason: "exhausted" });
    const ticket = desk.hold(requestOf(1));
    expect(desk.observe({ kind: "availability", endpointId: "a", availability: "down" })).toEqual([
      [ticket, "unavailable"],
    ]);
  });

  it("orders by arrival where the policy has no key", () => {
    const desk = new Desk(["a"], {
      policy: "token_aware",
      policyOptions: { horizonSeconds: 1 },
      whenFull: "hold",
    });
    const lease = desk.send(
      requestOf(10, { output: requestProfile({ promptTokens: 1, expectedOutputTokens: 1e6 }).output }),
    );
    const held = times(3, (i) => {
      desk.nowMs = i;
      return desk.hold(requestOf(3 - i));
    });
    expect(held.map(({ place }) => place?.key)).toEqual([0, 1, 2]);
    expect(desk.finish(lease).map(([ticket]) => ticket)).toEqual(held);
  });

  it("may bind late as well: there is room, but nobody can begin", () => {
    const script = new Script();
    const policy = script.policy({ isLate: true, isBounded: true });
    const desk = new Desk(["a"], { policy, whenFull: "hold" });
    const lease = desk.pin("a");
    const forA = desk.hold(requestOf(100));
    script.full.add("a");
    const forAny = desk.hold(requestOf(200));
    expect([forA.place?.endpointId, forAny.place?.endpointId]).toEqual(["a", undefined]);
    script.full.delete("a");
    expect(desk.finish(lease)).toEqual([[forA, "a"]]);
    expect(forAny.place?.endpointId).toBe("a");
  });
});
