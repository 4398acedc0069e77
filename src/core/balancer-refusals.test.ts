import { describe, expect, it } from "vitest";
import { mustBeRouted } from "../../test/support/decisions.ts";
import { outcomesOf, requestOf } from "../../test/support/desk.ts";
import { times } from "../../test/support/fleet.ts";
import { TestOrder } from "../../test/support/test-order.ts";
import { Balancer } from "./balancer.ts";
import type { Decision } from "./decision.ts";
import { endpoint } from "./endpoint.ts";
import type { Priority } from "./request.ts";

/** One endpoint with one place; at most `maxRequests` are held. */
function start(maxRequests: number) {
  const endpoints = [endpoint({ id: "a", maxRequests: 1, tokensPerSecond: 100 })];
  const options = { policy: "least_connections", endpoints, whenFull: "hold" } as const;
  const balancer = new Balancer({ ...options, order: new TestOrder(), holding: { maxRequests, promoteAfterMs: 1e9 } });
  /** Requests that take the place one after the other, `everyMs` apart; the last one stays. */
  const drain = (count: number, everyMs: number): number => {
    for (let i = 0; i < count; i++) {
      const { lease } = mustBeRouted(balancer.decide(requestOf(1), i * everyMs));
      balancer.finish(lease, { kind: "completed" }, (i + 1) * everyMs);
    }
    mustBeRouted(balancer.decide(requestOf(1), count * everyMs));
    return count * everyMs;
  };
  const hold = (count: number, nowMs: number, priority: Priority = "normal") =>
    times(count, () => balancer.decide(requestOf(1, { priority }), nowMs));
  const ask = (nowMs: number, priority: Priority = "normal") => balancer.decide(requestOf(1, { priority }), nowMs);
  return { balancer, drain, hold, ask };
}

const retryAfterMs = (decision: Decision): number => (decision.kind === "refused" ? decision.retryAfterMs : Number.NaN);

describe("a request that is refused for want of room", () => {
  it("is told to come when those before it are through at the rate at which requests end", () => {
    const { drain, hold, ask } = start(9);
    const nowMs = drain(20, 500);
    hold(9, nowMs);
    const decision = ask(nowMs);
    expect(decision).toMatchObject({ kind: "refused", reason: "queue_full" });
    expect(retryAfterMs(decision) / 1000).toBeCloseTo(10 / 2, 1);
  });

  it("counts only those before it that are as urgent", () => {
    const { drain, hold, ask } = start(9);
    const nowMs = drain(20, 500);
    hold(7, nowMs, "high");
    hold(2, nowMs);
    expect(retryAfterMs(ask(nowMs)) / 1000).toBeCloseTo(10 / 2, 1);
    expect(retryAfterMs(ask(nowMs, "low")) / 1000).toBeCloseTo(10 / 2, 1);
    hold(2, nowMs, "high");
    expect(retryAfterMs(ask(nowMs, "high")) / 1000).toBeCloseTo(10 / 2, 1);
  });

  it.each([
    ["a second at least", 20, 10, 1000],
    ["a minute at most", 3, 20_000, 60_000],
  ])("is told %s", (_, count, everyMs, expectedMs) => {
    const { drain, hold, ask } = start(9);
    const nowMs = drain(count, everyMs);
    hold(9, nowMs);
    expect(retryAfterMs(ask(nowMs))).toBe(expectedMs);
  });

  it("is told when the first request should end, as long as none did", () => {
    const { drain, ask } = start(0);
    drain(0, 0);
    const decision = ask(0);
    expect(decision).toMatchObject({ kind: "refused", reason: "saturated" });
    // Of 100 tokens at 100 a second.
    expect(retryAfterMs(decision)).toBe(1000);
  });

  it("is told the same when it was shed, or waited too long", () => {
    const { balancer, drain, hold, ask } = start(3);
    const nowMs = drain(20, 500);
    hold(3, nowMs);
    const decision = ask(nowMs, "high");
    if (decision.kind !== "held") throw new Error(decision.kind);
    expect(decision.displaced.map((release) => release.decision)).toMatchObject([{ kind: "refused", reason: "shed" }]);
    const [shed] = decision.displaced;
    // The newcomer and the two that stay go before it.
    expect(shed && retryAfterMs(shed.decision) / 1000).toBeCloseTo(4 / 2, 1);
    const overdue = balancer.tick(nowMs + 180_000);
    expect(outcomesOf(overdue).map(([, reason]) => reason)).toEqual(times(3, () => "queue_timeout"));
    expect(balancer.refusals).toEqual({ shed: 1, queue_timeout: 3 });
  });

  it("is told nothing of the queue when that is not why", () => {
    const { balancer, drain, hold } = start(9);
    const nowMs = drain(20, 40_000);
    hold(9, nowMs);
    const [release] = balancer.observe({ kind: "availability", endpointId: "a", availability: "down" }, nowMs);
    expect(release?.decision).toMatchObject({ reason: "unavailable", retryAfterMs: 1000 });
  });
});

describe("everybody who is held", () => {
  it("is refused when the balancer is told to let go of them", () => {
    const { balancer, drain, hold } = start(9);
    drain(0, 0);
    const tickets = hold(3, 0).map((decision) => (decision.kind === "held" ? decision.ticket : undefined));
    const releases = balancer.releaseAll("shutting_down", 0);
    expect(outcomesOf(releases)).toEqual(tickets.map((ticket) => [ticket, "shutting_down"]));
    expect(releases[0]?.decision.explanation.reason).toBe("held, then shutting_down");
    expect([balancer.heldRequests, balancer.releaseAll("shutting_down", 0)]).toEqual([0, []]);
  });
});

describe("whether there is another endpoint for a request", () => {
  const endpoints = [endpoint({ id: "a", maxRequests: 1 }), endpoint({ id: "b" }), endpoint({ id: "idle", weight: 0 })];
  const balancer = new Balancer({ policy: "least_connections", endpoints });

  it("does not depend on room, nor on a pause that passes", () => {
    const { lease } = mustBeRouted(balancer.decide(requestOf(1), 0, ["b"]));
    balancer.observe({ kind: "busy", endpointId: "a", lease, retryAfterMs: 60_000 }, 0);
    expect(balancer.hasOther(requestOf(1), ["b"])).toBe(true);
  });

  it("is denied where all were tried or take nothing new", () => {
    expect(balancer.hasOther(requestOf(1), ["a", "b"])).toBe(false);
    balancer.observe({ kind: "draining", endpointId: "b", isDraining: true }, 0);
    expect(balancer.hasOther(requestOf(1), ["a"])).toBe(false);
    balancer.observe({ kind: "models", endpointId: "a", models: new Set(["other"]) }, 0);
    expect(balancer.hasOther(requestOf(1, { model: "m" }), [])).toBe(false);
  });
});
