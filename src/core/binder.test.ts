import { describe, expect, it } from "vitest";
import { busy, COMPLETED, Desk, outcomesOf, requestOf } from "../../test/support/desk.ts";
import { times } from "../../test/support/fleet.ts";
import { Script } from "../../test/support/scripted-policy.ts";
import type { Outcome } from "./decision.ts";

describe("a request whose best endpoint cannot begin on it", () => {
  it("is held for that endpoint, explained, and takes nothing of it", () => {
    const { script, desk } = busy(["a", "b"]);
    script.scores.b = -1;
    const request = requestOf(300);
    const before = { ...desk.member("b").account };
    const decision = desk.balancer.decide(request, 50, ["c"]);
    expect(decision).toMatchObject({
      kind: "held",
      ticket: { request, tried: ["c"], heldAtMs: 50, holder: undefined },
      explanation: { policy: "scripted", reason: "the test says so" },
    });
    expect(decision.explanation.considered).toEqual([
      { endpoint: "a", score: 0 },
      { endpoint: "b", score: -1 },
    ]);
    expect(desk.balancer.heldRequests).toBe(1);
    expect([desk.member("a").held.requests, desk.member("b").held.requests]).toEqual([0, 1]);
    expect(desk.member("b").held.aheadOf(1e9, 0).prefillTokens).toBe(300);
    expect({ ...desk.member("b").account }).toEqual(before);
  });

  it("goes at once to its best endpoint while another one has nothing to do", () => {
    const script = new Script();
    const desk = new Desk(["a", "b"], { policy: script.policy() });
    desk.pin("a");
    script.scores.a = -1;
    expect(desk.send(requestOf(300)).endpointId).toBe("a");
  });

  it("goes then to the best one that has memory for it", () => {
    const script = new Script();
    const desk = new Desk(["a", "b", "c"], { policy: script.policy() });
    for (const id of ["a", "b"]) desk.pin(id);
    Object.assign(script.scores, { a: -2, b: -1 });
    script.cramped.add("a");
    expect(desk.send(requestOf(300)).endpointId).toBe("b");
    script.cramped.add("b");
    expect(desk.send(requestOf(300)).endpointId).toBe("c");
  });

  it("is not held for what it has failed on before", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(300), ["a"]);
    expect(ticket.place?.endpointId).toBe("b");
    expect(desk.finish(leaseAt("a"))).toEqual([]);
    expect(desk.finish(leaseAt("b"))).toEqual([[ticket, "b"]]);
  });

  it("is sent at once where nobody is to be held, to where there is memory", () => {
    const { script, desk } = busy(["a", "b"], { holding: { maxRequests: 0 } });
    script.scores.a = -1;
    expect(desk.send(requestOf(300)).endpointId).toBe("a");
    script.cramped.add("a");
    expect(desk.send(requestOf(300)).endpointId).toBe("b");
    script.cramped.add("b");
    expect(desk.send(requestOf(300)).endpointId).toBe("a");
  });

  it("is refused when as many are held as may be", () => {
    const { desk, leaseAt } = busy(["a"], { holding: { maxRequests: 1, maxWaitMs: 1000 } });
    const first = desk.hold(requestOf(300));
    expect(desk.balancer.decide(requestOf(10), 0)).toMatchObject({ kind: "refused", reason: "queue_full" });
    expect(desk.finish(leaseAt("a"))).toEqual([[first, "a"]]);
    expect(desk.balancer.decide(requestOf(10), 0).kind).toBe("held");
    expect(desk.balancer.refusals).toEqual({ queue_full: 1 });
  });

  it("is refused when its body would be more than may be held", () => {
    const { desk } = busy(["a"], { holding: { maxBytes: 1000 } });
    expect(desk.balancer.decide(requestOf(300), 0, [], 700).kind).toBe("held");
    expect(desk.balancer.decide(requestOf(300), 0, [], 301)).toMatchObject({ reason: "queue_full" });
    expect(desk.balancer.decide(requestOf(300), 0, [], 300).kind).toBe("held");
    expect(desk.balancer.heldBytes).toBe(1000);
  });
});

describe("a held request", () => {
  it("goes when its endpoint has nothing left to do", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(300));
    const [release] = desk.balancer.finish(leaseAt("a"), COMPLETED, 700);
    expect(release).toMatchObject({ ticket, decision: { kind: "routed", endpoint: { id: "a" } } });
    expect(release?.decision).toMatchObject({ lease: { openedAtMs: 700, isOpen: true } });
    expect([desk.balancer.heldRequests, ticket.place]).toEqual([0, undefined]);
    expect(desk.member("a").account.requests).toBe(1);
  });

  it("goes when a first token makes its endpoint able to begin", () => {
    const { script, desk, leaseAt } = busy(["a"]);
    const ticket = desk.hold(requestOf(300));
    expect(desk.firstToken(leaseAt("a"))).toEqual([]);
    script.ready.add("a");
    expect(desk.firstToken(leaseAt("a"))).toEqual([]);
    expect(desk.finish(leaseAt("a"))).toEqual([[ticket, "a"]]);
  });

  it("goes with the first token when that is the moment", () => {
    const { script, desk, leaseAt } = busy(["a"]);
    const ticket = desk.hold(requestOf(300));
    script.ready.add("a");
    expect(desk.firstToken(leaseAt("a"))).toEqual([[ticket, "a"]]);
  });

  it.each<Outcome["kind"]>(["completed", "failed", "aborted"])("goes when what ran there %s", (kind) => {
    const { desk, leaseAt } = busy(["a"]);
    const ticket = desk.hold(requestOf(300));
    expect(outcomesOf(desk.balancer.finish(leaseAt("a"), { kind }, 10))).toEqual([[ticket, "a"]]);
    expect(desk.balancer.finish(leaseAt("a"), { kind }, 10)).toEqual([]);
  });

  it("goes before those whose key is larger, all of them as long as the endpoint can begin", () => {
    const { script, desk, leaseAt } = busy(["a"]);
    const [long, short, middle] = [900, 100, 500].map((tokens) => desk.hold(requestOf(tokens)));
    script.ready.add("a");
    expect(desk.firstToken(leaseAt("a")).map(([ticket]) => ticket)).toEqual([short, middle, long]);
  });

  it("is not overtaken by a newcomer with a larger key, only by one with a smaller", () => {
    const { script, desk } = busy(["a"]);
    desk.hold(requestOf(500));
    script.ready.add("a");
    expect(desk.hold(requestOf(600)).place?.endpointId).toBe("a");
    expect(desk.send(requestOf(400)).endpointId).toBe("a");
  });

  it("is sent elsewhere when another endpoint is better by the time its own can begin", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(300));
    Object.assign(script.scores, { a: 0, b: -1 });
    script.ready.add("a").add("b");
    expect(desk.firstToken(leaseAt("a"))).toEqual([[ticket, "b"]]);
  });

  it("is held for another endpoint when that is better and cannot begin yet", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(300));
    Object.assign(script.scores, { a: 0, b: -1 });
    script.ready.add("a");
    expect(desk.firstToken(leaseAt("a"))).toEqual([]);
    expect(ticket.place?.endpointId).toBe("b");
    expect([desk.member("a").held.requests, desk.member("b").held.requests]).toEqual([0, 1]);
    expect(desk.finish(leaseAt("b"))).toEqual([[ticket, "b"]]);
  });

  it("is taken by another endpoint that can begin, where that is better by the score", () => {
    const { script, desk, leaseAt } = busy(["a", "b"]);
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(300));
    script.ready.add("b");
    expect(desk.firstToken(leaseAt("b"))).toEqual([]);
    Object.assign(script.scores, { a: 5, b: 4 });
    const other = desk.pin("b");
    expect(desk.firstToken(other)).toEqual([[ticket, "b"]]);
  });

  it("is taken only by an endpoint that may serve it", () => {
    const { script, desk, leaseAt } = busy(["a", "b", "c"]);
    Object.assign(script.scores, { a: 1, b: 2, c: 3 });
    const ticket = desk.hold(requestOf(300), ["c"]);
    Object.assign(script.scores, { a: 9, b: 9, c: 0 });
    script.ready.add("c");
    expect(desk.firstToken(leaseAt("c"))).toEqual([]);
    expect(ticket.place?.endpointId).toBe("a");
  });

  it("is taken in the order of the keys: of the first in each line, and between those the endpoint has itself", () => {
    const { script, desk, leaseAt } = busy(["a", "b", "free"]);
    const holdAt = (id: string, ...tokens: readonly number[]) => {
      Object.assign(script.scores, { a: 0, b: 0, free: 0, [id]: -1 });
      return tokens.map((promptTokens) => desk.hold(requestOf(promptTokens)));
    };
    const [a1, a2] = holdAt("a", 100, 500);
    const [b1, b2] = holdAt("b", 200, 300);
    const [own1, own2] = holdAt("free", 250, 600);
    script.ready.add("free");
    const order = [a1, b1, own1, b2, a2, own2];
    expect(desk.firstToken(leaseAt("free"))).toEqual(order.map((ticket) => [ticket, "free"]));
  });

  it("is not taken where it is no better off", () => {
    const { script, desk, leaseAt } = busy(["a", "free"]);
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(100));
    Object.assign(script.scores, { a: 3, free: 3 });
    script.ready.add("free");
    expect(desk.firstToken(leaseAt("free"))).toEqual([]);
    expect(ticket.place?.endpointId).toBe("a");
  });

  it("goes with sixteen at most at one event; the next event lets the others go", () => {
    const { script, desk, leaseAt } = busy(["a"]);
    const held = times(20, (i) => desk.hold(requestOf(100 + i)));
    script.ready.add("a");
    expect(desk.firstToken(leaseAt("a"))).toHaveLength(16);
    expect(desk.finish(leaseAt("a")).map(([ticket]) => ticket)).toEqual(held.slice(16));
  });

  it("lets the next one go when it leaves, if that can", () => {
    const { script, desk } = busy(["a"]);
    const [first, second] = [desk.hold(requestOf(100)), desk.hold(requestOf(200))] as const;
    script.ready.add("a");
    expect(outcomesOf(desk.balancer.leave(first, 0))).toEqual([[second, "a"]]);
  });

  it("changes nothing when it leaves from behind another", () => {
    const { script, desk } = busy(["a"]);
    const [first, second] = [desk.hold(requestOf(100)), desk.hold(requestOf(200))] as const;
    script.ready.add("a");
    expect(desk.balancer.leave(second, 0)).toEqual([]);
    expect(first.place).toBeDefined();
  });

  it("leaves with its client, and is not heard of again", () => {
    const { desk, leaseAt } = busy(["a"]);
    const [gone, stays] = [desk.hold(requestOf(100)), desk.hold(requestOf(200))];
    expect(times(2, () => desk.balancer.leave(gone, desk.nowMs))).toEqual([[], []]);
    expect(desk.balancer.heldRequests).toBe(1);
    expect(desk.finish(leaseAt("a"))).toEqual([[stays, "a"]]);
    expect(desk.balancer.leave(stays, desk.nowMs)).toEqual([]);
  });

  it("gives back what its holder put on it", () => {
    const { desk, leaseAt } = busy(["a"]);
    const holder = { answer: "stream" };
    desk.hold(requestOf(100)).holder = holder;
    expect(desk.balancer.finish(leaseAt("a"), COMPLETED, 1)[0]?.ticket.holder).toBe(holder);
  });
});
