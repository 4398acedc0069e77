import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Front, type Told } from "../../test/support/front.ts";
import { endpoint } from "./endpoint.ts";
import type { Availability } from "./health.ts";
import { requestProfile } from "./request.ts";

const IDS = ["a", "b", "c", "d"];
const ALL = IDS.map((id) => ({ id }));

function observe(front: Front, id: string, availability: Availability): void {
  front.balancer.observe({ kind: "availability", endpointId: id, availability }, front.nowMs);
}

describe("an endpoint whose requests fail", () => {
  it("is ejected, and comes back by one request on trial", () => {
    const front = new Front(ALL);
    front.break("a");
    expect(front.seen()).toEqual({ a: "ejected", b: "in", c: "in", d: "in" });
    front.nowMs = 5_000;
    const trial = front.send(["b", "c", "d"]);
    expect(front.seen().a).toBe("ejected");
    front.end(trial, "succeeded");
    expect(front.seen().a).toBe("in");
  });

  it.each<Told>(["neutral", "busy", "nothing", "failed"])("has another trial after one that ended with: %s", (told) => {
    const front = new Front(ALL);
    front.break("a");
    front.nowMs = 5_000;
    front.play("a", told);
    front.nowMs += 10_000;
    expect(front.seen().a).toBe("in");
    front.play("a", "succeeded", "succeeded");
    expect(front.member("a").breaker.stateAt(front.nowMs)).toBe("closed");
  });

  it("is not brought back by good probes", () => {
    const front = new Front(ALL);
    observe(front, "a", "ready");
    front.break("a");
    for (let i = 0; i < 20; i++) observe(front, "a", "ready");
    expect(front.seen().a).toBe("ejected");
  });

  it("has its trial at once when it was down or its engine restarted", () => {
    const front = new Front(ALL);
    for (const id of ["a", "b"]) front.break(id);
    observe(front, "a", "down");
    expect(front.seen()).toMatchObject({ a: "down", b: "ejected" });
    observe(front, "a", "ready");
    front.balancer.observe({ kind: "restarted", endpointId: "b" }, 0);
    expect(front.seen()).toMatchObject({ a: "in", b: "in" });
    const [first, second] = [front.send(["b", "c", "d"]), front.send(["a", "c", "d"])];
    expect(front.seen()).toMatchObject({ a: "ejected", b: "ejected" });
    front.end(first, "failed");
    front.end(second, "succeeded");
    expect(front.seen()).toMatchObject({ a: "ejected", b: "in" });
  });

  it("is known for nothing that it cached before", () => {
    const front = new Front(ALL);
    const request = requestProfile({ promptTokens: 256, prefix: { hashes: [1, 2, 3, 4], tokensPerBlock: 64 } });
    front.end(front.send(["b", "c", "d"], request), "succeeded");
    expect(front.member("a").cachedTokens(request)).toBe(255);
    front.break("a");
    expect(front.member("a").cachedTokens(request)).toBe(0);
  });

  it("gets few requests, though it fails faster than others answer", () => {
    const front = new Front([{ id: "broken" }, { id: "b" }, { id: "c" }]);
    const running: { endsAtMs: number; end: () => void }[] = [];
    let sentToBroken = 0;
    for (let sent = 0; sent < 200; sent++) {
      if (running.length === 20) {
        const next = running.reduce((a, b) => (b.endsAtMs < a.endsAtMs ? b : a));
        running.splice(running.indexOf(next), 1);
        front.nowMs = next.endsAtMs;
        next.end();
      }
      const routed = front.send();
      const isBroken = routed.endpoint.id === "broken";
      if (sent >= 20 && isBroken) sentToBroken++;
      const end = () => front.end(routed, isBroken ? "failed" : "succeeded");
      running.push({ endsAtMs: front.nowMs + (isBroken ? 1 : 500), end });
    }
    expect(sentToBroken).toBeLessThan(18);
    expect(front.seen().broken).toBe("ejected");
  });

  it("that hangs while its probes are good gets trials alone, in growing gaps", () => {
    const front = new Front([{ id: "zombie" }, { id: "b" }]);
    const hung: { sinceMs: number; end: () => void }[] = [];
    const trialsAtMs: number[] = [];
    let requests = 0;
    for (; front.nowMs < 600_000; front.nowMs += 250, requests++) {
      if (front.nowMs % 5_000 === 0) observe(front, "zombie", "ready");
      while ((hung[0]?.sinceMs ?? front.nowMs) <= front.nowMs - 10_000) hung.shift()?.end();
      const routed = front.send();
      if (routed.endpoint.id === "b") front.end(routed, "succeeded");
      else {
        trialsAtMs.push(front.nowMs);
        hung.push({ sinceMs: front.nowMs, end: () => front.end(routed, "failed") });
      }
    }
    expect(trialsAtMs.length / requests).toBeLessThan(0.05);
    const gaps = trialsAtMs.map((ms, i) => ms - (trialsAtMs[i - 1] ?? 0)).slice(-4);
    expect(gaps).toEqual([...gaps].sort((x, y) => x - y));
    expect(gaps.at(-1)).toBeGreaterThan(150_000);
  });
});

describe("what does not count against an endpoint", () => {
  it("neither clients' mistakes nor refusals for overload, however many", () => {
    const front = new Front(ALL);
    for (let i = 0; i < 50; i++) front.play("a", "neutral", "busy");
    expect(front.member("a").breaker.openings).toBe(0);
  });

  it("nor do they make up for failures", () => {
    const front = new Front(ALL, { ejection: { failures: 3 } });
    front.play("a", "failed", "failed", "busy");
    front.nowMs = 1_000;
    front.play("a", "neutral", "failed");
    expect(front.seen().a).toBe("ejected");
  });

  it("what is in flight there when it takes no requests any more", () => {
    const front = new Front(ALL);
    const inFlight = Array.from({ length: 10 }, () => front.send(["b", "c", "d"]));
    observe(front, "a", "down");
    for (const routed of inFlight) front.end(routed, "failed");
    observe(front, "a", "ready");
    expect([front.seen().a, front.member("a").breaker.openings]).toEqual(["in", 0]);
  });

  it("requests of an endpoint that had its name before", () => {
    const front = new Front([{ id: "a", url: "http://one" }, { id: "b" }]);
    const old = Array.from({ length: 5 }, () => front.send(["b"]));
    front.balancer.setEndpoints([endpoint({ id: "a", url: "http://two" }), endpoint({ id: "b" })], 0);
    for (const routed of old) front.end(routed, "failed");
    expect(front.seen().a).toBe("in");
  });

  it("work in flight is what it was, through every change of health", () => {
    const front = new Front(ALL);
    const long = Array.from({ length: 8 }, () => front.send(["b", "c", "d"]));
    for (let cycle = 0; cycle < 30; cycle++) {
      front.nowMs += 1_000;
      if (cycle === 10) front.break("a");
      for (const availability of ["down", "loading", "ready"] as const) observe(front, "a", availability);
      front.balancer.observe({ kind: "restarted", endpointId: "a" }, front.nowMs);
      front.balancer.tick(front.nowMs);
      expect(front.member("a").account.requests).toBe(8);
    }
    for (const routed of long) front.end(routed, "neutral");
    expect(front.member("a").account.requests).toBe(0);
  });
});

describe("how many are ejected", () => {
  it.each<[number, number, number]>([
    [1, 0.5, 0],
    [2, 0.5, 1],
    [3, 0.5, 1],
    [4, 0.5, 2],
    [10, 0.5, 5],
    [10, 0.05, 1],
    [3, 1, 3],
    [4, 0, 0],
  ])("of %d endpoints by a ratio of %d, %d at most", (size, maxRatio, expected) => {
    const ids = Array.from({ length: size }, (_, i) => `e${i}`);
    const front = new Front(
      ids.map((id) => ({ id })),
      { ejection: { maxRatio } },
    );
    for (const id of ids) front.break(id);
    expect(front.balancer.members.filter(({ breaker }) => breaker.isOpen)).toHaveLength(expected);
  });

  it("other numbers hold from when they are given, and bring back those that are too many", () => {
    const front = new Front(ALL);
    for (const id of ["a", "b"]) front.break(id);
    front.balancer.reconfigure({ ejection: { maxRatio: 0.25 } }, 0);
    expect(front.seen()).toEqual({ a: "in", b: "ejected", c: "in", d: "in" });
    front.balancer.reconfigure({ ejection: { maxRatio: 1, failures: 1 }, slowStartMs: 10_000 }, 0);
    front.play("c", "failed");
    expect(front.seen()).toMatchObject({ b: "ejected", c: "ejected" });
    front.nowMs = 5_000;
    front.play("c", "succeeded");
    expect(front.member("c").slowStart.warmthAt(10_000)).toBeCloseTo(0.55, 10);
  });

  it("those beyond stay in until one of the others is back", () => {
    const front = new Front(ALL);
    for (const id of ["a", "b", "c"]) front.break(id);
    expect(front.seen()).toEqual({ a: "ejected", b: "ejected", c: "in", d: "in" });
    front.nowMs = 5_000;
    front.play("a", "succeeded");
    front.play("c", "failed");
    expect(front.seen()).toEqual({ a: "in", b: "in", c: "ejected", d: "in" });
    expect(front.member("b").breaker.stateAt(5_000)).toBe("half_open");
  });

  it("those out of reach do not count, and the one ejected longest ago comes back for them", () => {
    const front = new Front(ALL);
    front.break("b");
    front.nowMs = 1;
    front.break("a");
    observe(front, "c", "down");
    expect(front.seen()).toEqual({ a: "ejected", b: "in", c: "down", d: "in" });
    front.balancer.observe({ kind: "draining", endpointId: "d", isDraining: true }, 1);
    expect(front.seen()).toEqual({ a: "ejected", b: "in", c: "down", d: "draining" });
    front.balancer.setEndpoints([endpoint({ id: "a" }), endpoint({ id: "b", weight: 0 })], 1);
    expect(front.seen()).toEqual({ a: "in", b: "weight_zero" });
  });

  it("never more than may be, whatever happens", () => {
    const event = fc.record({
      at: fc.nat(3),
      kind: fc.constantFrom<Availability | "failed" | "succeeded" | "drain" | "undrain" | "leave" | "return" | "wait">(
        "failed",
        "failed",
        "succeeded",
        "down",
        "ready",
        "loading",
        "drain",
        "undrain",
        "leave",
        "return",
        "wait",
      ),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 150 }), (events) => {
        const front = new Front(ALL, { ejection: { failures: 1 } });
        const present = new Set(IDS);
        for (const { at, kind } of events) {
          const id = IDS[at] as string;
          if (kind === "wait") front.nowMs += 3_000;
          else if (kind === "leave" || kind === "return") {
            if (kind === "leave") present.delete(id);
            else present.add(id);
            front.balancer.setEndpoints(
              [...present].map((each) => endpoint({ id: each })),
              front.nowMs,
            );
          } else if (kind === "drain" || kind === "undrain") {
            front.balancer.observe({ kind: "draining", endpointId: id, isDraining: kind === "drain" }, front.nowMs);
          } else if (kind === "failed" || kind === "succeeded") {
            const decision = front.decide(IDS.filter((other) => other !== id));
            if (decision.kind === "routed") front.end(decision, kind);
          } else observe(front, id, kind);
          const usable = front.balancer.members.filter(({ isUsable }) => isUsable);
          const out = usable.filter(({ breaker }) => breaker.isOpen);
          expect(out.length).toBeLessThanOrEqual(usable.length < 2 ? 0 : Math.max(1, Math.floor(usable.length / 2)));
          if (usable.length > 0)
            expect(front.balancer.explain(requestProfile({ promptTokens: 1 }), front.nowMs).chosen).toBeDefined();
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("where every endpoint that could take a request is ejected", () => {
  const serving = (front: Front, id: string, model: string) =>
    front.balancer.observe({ kind: "models", endpointId: id, models: new Set([model]) }, front.nowMs);
  const request = requestProfile({ promptTokens: 100, model: "m" });

  it("the one that has been out longest is tried, and no other", () => {
    const front = new Front(ALL);
    for (const id of ["a", "b"]) serving(front, id, "m");
    for (const id of ["c", "d"]) serving(front, id, "n");
    front.break("b");
    front.nowMs = 1;
    front.break("a");
    const others = { c: "model_not_served", d: "model_not_served" };
    expect(front.seen(request)).toEqual({ a: "ejected", b: "in", ...others });
    front.nowMs = 5_000;
    front.end(front.send(["a"], request), "failed");
    expect(front.seen(request)).toEqual({ a: "in", b: "ejected", ...others });
  });

  it("those that failed their probes or are drained stay out", () => {
    const front = new Front(ALL);
    front.break("a");
    observe(front, "b", "down");
    observe(front, "c", "auth_failed");
    front.balancer.observe({ kind: "draining", endpointId: "d", isDraining: true }, 0);
    expect(front.seen()).toEqual({ a: "in", b: "down", c: "auth_failed", d: "draining" });
    observe(front, "a", "loading");
    expect(front.refuse().reason).toBe("unavailable");
  });

  it("a request that failed elsewhere goes there rather than nowhere", () => {
    const front = new Front([{ id: "a" }, { id: "b" }]);
    front.break("a");
    expect(front.send(["b"]).endpoint.id).toBe("a");
    expect(front.refuse(["a", "b"]).reason).toBe("exhausted");
  });
});

describe("an endpoint that is busy", () => {
  it.each<[string, number | undefined, number]>([
    ["for as long as it asked", 3_000, 3_000],
    ["for a second when it did not say", undefined, 1_000],
    ["for a minute at most", 3_600_000, 60_000],
    ["not at all when it asked for nothing", 0, 0],
  ])("gets no requests %s", (_, retryAfterMs, busyMs) => {
    const front = new Front(ALL);
    front.end(front.send(["b", "c", "d"]), "busy", retryAfterMs);
    front.nowMs = busyMs - 1;
    if (busyMs > 0) expect(front.seen().a).toBe("busy");
    front.nowMs = busyMs;
    expect(front.seen().a).toBe("in");
  });

  it("is not let off by a shorter pause that it asks for later", () => {
    const front = new Front(ALL);
    const [one, two] = [front.send(["b", "c", "d"]), front.send(["b", "c", "d"])];
    front.end(one, "busy", 10_000);
    front.end(two, "busy", 1_000);
    front.nowMs = 9_999;
    expect(front.seen().a).toBe("busy");
  });

  it("is used when only busy ones are left, before any that is ejected", () => {
    const front = new Front(ALL);
    front.break("a");
    for (const id of ["b", "c", "d"]) front.play(id, "busy");
    expect(front.seen()).toEqual({ a: "ejected", b: "in", c: "in", d: "in" });
    expect(front.refuse(["a", "b", "c", "d"]).reason).toBe("exhausted");
  });

  it("is not down: it is back at its time without a probe", () => {
    const front = new Front([{ id: "a" }]);
    front.play("a", "busy", "busy", "busy", "busy", "busy", "busy");
    expect(front.seen()).toEqual({ a: "in" });
    expect(front.member("a").availability).toBe("unknown");
  });
});

describe("a session whose endpoint fails", () => {
  it("moves on at once, and does not come back to it before it is well", () => {
    const front = new Front([{ id: "a" }, { id: "b" }, { id: "c" }], { policy: "session_affinity" });
    const request = requestProfile({ promptTokens: 10, sessionKey: "s" });
    const home = front.send([], request).endpoint.id;
    for (let i = 0; i < 5; i++) {
      const first = front.send([], request);
      front.end(first, "failed");
      const second = front.send([first.endpoint.id], request);
      expect([first.endpoint.id, second.endpoint.id]).not.toEqual([home, home]);
      front.end(second, "succeeded");
    }
    const places = Array.from({ length: 20 }, () => {
      front.nowMs += 200;
      const routed = front.send([], request);
      front.end(routed, "succeeded");
      return routed.endpoint.id;
    });
    expect(new Set(places)).toHaveProperty("size", 1);
    expect(places).not.toContain(home);
  });
});
