import { describe, expect, it } from "vitest";
import { mustBeRouted } from "../../test/support/decisions.ts";
import { engineSignals } from "../../test/support/engine-signals.ts";
import { times } from "../../test/support/fleet.ts";
import { Script } from "../../test/support/scripted-policy.ts";
import { Balancer, type BalancerOptions, type Observation } from "./balancer.ts";
import type { Outcome, Release } from "./decision.ts";
import { endpoint } from "./endpoint.ts";
import type { Lease } from "./ledger.ts";
import type { Member } from "./pool.ts";
import { type RequestProfile, requestProfile } from "./request.ts";
import type { Ticket } from "./ticket.ts";

const COMPLETED: Outcome = { kind: "completed" };
const ABORTED: Outcome = { kind: "aborted" };

/** A balancer, a clock, and what became of the requests it was asked about. */
class Desk {
  readonly balancer: Balancer;
  nowMs = 0;

  constructor(ids: readonly string[], options: Omit<BalancerOptions, "endpoints">) {
    this.balancer = new Balancer({ ...options, endpoints: ids.map((id) => endpoint({ id })) });
  }

  member(id: string): Member {
    const found = this.balancer.members.find((member) => member.endpoint.id === id);
    if (found === undefined) throw new RangeError(id);
    return found;
  }

  send(request: RequestProfile, tried: readonly string[] = []): Lease {
    return mustBeRouted(this.balancer.decide(request, this.nowMs, tried)).lease;
  }

  /** The request goes to `id`, whatever the policy thinks. */
  pin(id: string, request = requestOf(1)): Lease {
    const others = this.balancer.members.map((member) => member.endpoint.id).filter((other) => other !== id);
    return this.send(request, others);
  }

  hold(request: RequestProfile, tried: readonly string[] = []): Ticket {
    const decision = this.balancer.decide(request, this.nowMs, tried);
    if (decision.kind !== "held") throw new Error(decision.kind);
    return decision.ticket;
  }

  finish(lease: Lease): Outcomes {
    return outcomesOf(this.balancer.finish(lease, COMPLETED, this.nowMs));
  }

  firstToken(lease: Lease): Outcomes {
    return outcomesOf(this.balancer.firstToken(lease, this.nowMs));
  }

  observe(observation: Observation): Outcomes {
    return outcomesOf(this.balancer.observe(observation, this.nowMs));
  }

  tick(): Outcomes {
    return outcomesOf(this.balancer.tick(this.nowMs));
  }
}

/** Released tickets in order, each with the endpoint it goes to, or with the reason of its refusal. */
type Outcomes = readonly (readonly [Ticket, string])[];

function outcomesOf(releases: readonly Release[]): Outcomes {
  return releases.map(({ ticket, decision }) => [
    ticket,
    decision.kind === "routed" ? decision.endpoint.id : decision.reason,
  ]);
}

function requestOf(promptTokens: number, known: Partial<RequestProfile> = {}): RequestProfile {
  return requestProfile({ promptTokens, expectedOutputTokens: 100, ...known });
}

/** Endpoints with one request in flight each, under a policy that does as the script says. */
function busy(ids: readonly string[], options: Omit<BalancerOptions, "endpoints" | "policy"> = {}) {
  const script = new Script();
  const desk = new Desk(ids, { ...options, policy: script.policy() });
  const leases = Object.fromEntries(ids.map((id) => [id, desk.pin(id)]));
  const leaseAt = (id: string) => leases[id] as Lease;
  return { script, desk, leaseAt };
}

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
    expect(desk.member("b").held.aheadOf(1e9).prefillTokens).toBe(300);
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

  it("is sent at once when as many are held as may be", () => {
    const { desk } = busy(["a"], { holding: { maxRequests: 1, maxWaitMs: 1000 } });
    desk.hold(requestOf(300));
    expect(desk.send(requestOf(10)).endpointId).toBe("a");
    expect(desk.balancer.heldRequests).toBe(1);
  });

  it("is sent at once when its body would be more than may be held", () => {
    const { desk } = busy(["a"], { holding: { maxBytes: 1000 } });
    expect(desk.balancer.decide(requestOf(300), 0, [], 700).kind).toBe("held");
    expect(desk.balancer.decide(requestOf(300), 0, [], 301).kind).toBe("routed");
    expect(desk.balancer.decide(requestOf(300), 0, [], 300).kind).toBe("held");
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

  it("is taken four at a time, of the first in each line the one that gains most", () => {
    const { script, desk, leaseAt } = busy(["a", "b", "free"]);
    Object.assign(script.scores, { a: -1, free: 9 });
    const atA = times(4, (i) => desk.hold(requestOf(100 + i)));
    Object.assign(script.scores, { b: -2 });
    const atB = times(4, (i) => desk.hold(requestOf(200 + i)));
    expect(atB.map(({ place }) => place?.endpointId)).toEqual(["b", "b", "b", "b"]);
    Object.assign(script.scores, { a: 5, b: 7, free: 0 });
    script.ready.add("free");
    expect(desk.firstToken(leaseAt("free"))).toEqual(atB.map((ticket) => [ticket, "free"]));
    expect(desk.finish(leaseAt("free"))).toEqual(atA.map((ticket) => [ticket, "free"]));
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

describe("time", () => {
  it("sends whoever was held too long, though no endpoint can begin", () => {
    const { desk } = busy(["a"], { holding: { maxRequests: 10, maxWaitMs: 1000 } });
    const first = desk.hold(requestOf(900));
    desk.nowMs = 400;
    const second = desk.hold(requestOf(100));
    expect(desk.balancer.nextWakeMs()).toBe(1000);
    desk.nowMs = 999;
    expect(desk.tick()).toEqual([]);
    desk.nowMs = 1000;
    expect(desk.tick()).toEqual([[first, "a"]]);
    expect(desk.balancer.nextWakeMs()).toBe(1400);
    desk.nowMs = 5000;
    expect(desk.tick()).toEqual([[second, "a"]]);
    expect(desk.balancer.nextWakeMs()).toBeUndefined();
  });

  it("is told once: of fractions of a ms nobody is asked for again", () => {
    const { desk } = busy(["a"], { holding: { maxWaitMs: 3000 } });
    desk.nowMs = 1096.48;
    const ticket = desk.hold(requestOf(300));
    desk.nowMs = desk.balancer.nextWakeMs() ?? Number.NaN;
    expect(desk.tick()).toEqual([[ticket, "a"]]);
  });

  it("counts from when a request came, however often it was moved", () => {
    const { script, desk, leaseAt } = busy(["a", "b"], { holding: { maxRequests: 10, maxWaitMs: 1000 } });
    script.scores.a = -1;
    const ticket = desk.hold(requestOf(300));
    Object.assign(script.scores, { a: 0, b: -1 });
    script.ready.add("a");
    desk.nowMs = 800;
    desk.firstToken(leaseAt("a"));
    expect([ticket.place?.endpointId, desk.balancer.nextWakeMs()]).toEqual(["b", 1000]);
  });

  it("sends whoever was held too long to where there is memory, if there is", () => {
    const { script, desk } = busy(["a", "b"], { holding: { maxRequests: 10, maxWaitMs: 1000 } });
    script.scores.a = -1;
    script.cramped.add("a");
    const ticket = desk.hold(requestOf(300));
    desk.nowMs = 1000;
    expect(desk.tick()).toEqual([[ticket, "b"]]);
  });

  it("makes an endpoint able to begin where the tokens of what runs there are not seen", () => {
    const desk = new Desk(["a"], { policy: "least_delay" });
    const unseen = requestOf(8000, { isStreaming: false });
    desk.send(unseen);
    const ticket = desk.hold(requestOf(8000));
    const wakeMs = desk.balancer.nextWakeMs() ?? Number.NaN;
    // 8,000 tokens of prefill by the prior, and a step.
    expect(Math.abs(wakeMs - 198)).toBeLessThan(2);
    desk.nowMs = wakeMs - 1;
    expect([desk.tick(), desk.balancer.nextWakeMs()]).toEqual([[], wakeMs]);
    desk.nowMs = wakeMs;
    expect(desk.tick()).toEqual([[ticket, "a"]]);
    expect(desk.balancer.nextWakeMs()).toBeUndefined();
  });

  it("changes nothing while nobody is held", () => {
    const desk = new Desk(["a"], { policy: "least_delay" });
    desk.send(requestOf(100, { isStreaming: false }));
    expect([desk.balancer.nextWakeMs(), desk.balancer.tick(1e6)]).toEqual([undefined, []]);
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
    const [release] = desk.balancer.finish(leaseAt("a"), ABORTED, 10);
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
    expect(desk.balancer.decide(requestOf(1), 0)).toMatchObject({ kind: "refused", reason: "saturated" });
    desk.nowMs = 1000;
    expect(desk.tick()).toEqual(held.map((ticket) => [ticket, "saturated"]));
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
    expect(forAny.place?.endpointId).toBeUndefined();
  });
});
