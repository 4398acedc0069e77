import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { oneAtATime } from "../../test/support/one-at-a-time.ts";
import { Script } from "../../test/support/scripted-policy.ts";
import {
  Balancer,
  endpoint,
  type Held,
  type PolicyDefinition,
  type Refused,
  type RequestProfile,
  type Routed,
  requestProfile,
} from "../core/index.ts";
import { LiveBalancer, type TicketHolder } from "./live-balancer.ts";

const clock = { nowMs: (): number => Date.now() };

interface Fixture {
  readonly balancer: LiveBalancer;
  readonly tick: { readonly calls: number };
  /** Has the balancer name this time from now on, whatever it thinks. */
  wakesAtMs(atMs: number): void;
}

function start(policy: PolicyDefinition = oneAtATime(), maxWaitMs = 60_000, maxRequests = 100): Fixture {
  const core = new Balancer({
    policy,
    endpoints: [endpoint({ id: "e1" })],
    holding: { maxRequests, maxWaitMs },
  });
  const spy = vi.spyOn(core, "tick");
  return {
    balancer: new LiveBalancer(core, clock),
    tick: {
      get calls() {
        return spy.mock.calls.length;
      },
    },
    wakesAtMs: (atMs) => void vi.spyOn(core, "nextWakeMs").mockReturnValue(atMs),
  };
}

class Waiting implements TicketHolder {
  readonly bodyBytes = 0;
  readonly decisions: (Routed | Refused)[] = [];

  released(decision: Routed | Refused): void {
    this.decisions.push(decision);
  }
}

const request = (promptTokens: number): RequestProfile => requestProfile({ promptTokens, expectedOutputTokens: 10 });
const nobody = new Waiting();

function send(balancer: LiveBalancer, promptTokens: number): Routed {
  const decision = balancer.decide(request(promptTokens), clock.nowMs(), [], nobody);
  if (decision.kind !== "routed") throw new Error(decision.kind);
  return decision;
}

function hold(balancer: LiveBalancer, promptTokens: number): Held & { readonly holder: Waiting } {
  const holder = new Waiting();
  const decision = balancer.decide(request(promptTokens), clock.nowMs(), [], holder);
  if (decision.kind !== "held") throw new Error(decision.kind);
  return { ...decision, holder };
}

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

describe("a live balancer", () => {
  it("tells the holder within the event that released its request, in the policy's order", () => {
    const { balancer } = start();
    const first = send(balancer, 10);
    const long = hold(balancer, 30).holder;
    const short = hold(balancer, 20).holder;
    expect(balancer.heldRequests).toBe(2);
    balancer.finish(first.lease, { kind: "completed" }, clock.nowMs());
    expect(short.decisions).toMatchObject([{ kind: "routed", endpoint: { id: "e1" } }]);
    expect(long.decisions).toEqual([]);
    balancer.finish((short.decisions[0] as Routed).lease, { kind: "completed" }, clock.nowMs());
    expect(long.decisions).toHaveLength(1);
    expect(balancer.heldRequests).toBe(0);
  });

  it("tells of a refusal when the last endpoint goes", () => {
    const { balancer } = start();
    send(balancer, 10);
    const { holder } = hold(balancer, 20);
    balancer.observe({ kind: "availability", endpointId: "e1", availability: "down" }, clock.nowMs());
    expect(holder.decisions).toMatchObject([{ kind: "refused", reason: "unavailable" }]);
  });

  it("tells nobody whose request was given up", () => {
    const { balancer } = start();
    const first = send(balancer, 10);
    const { holder, ticket } = hold(balancer, 20);
    balancer.leave(ticket, clock.nowMs());
    balancer.leave(ticket, clock.nowMs());
    expect(balancer.heldRequests).toBe(0);
    balancer.finish(first.lease, { kind: "completed" }, clock.nowMs());
    vi.advanceTimersByTime(120_000);
    expect(holder.decisions).toEqual([]);
  });

  it("tells the holder of the next request when the first of a line is given up", () => {
    const script = new Script();
    const { balancer } = start(script.policy());
    send(balancer, 10);
    const [first, next] = [hold(balancer, 20), hold(balancer, 30)];
    script.ready.add("e1");
    balancer.leave(first.ticket, clock.nowMs());
    expect(next.holder.decisions).toMatchObject([{ kind: "routed" }]);
    expect(first.holder.decisions).toEqual([]);
  });

  it("refuses a request that has been held too long, without any event", () => {
    const { balancer } = start(oneAtATime(), 1_000);
    send(balancer, 10);
    const { holder } = hold(balancer, 20);
    vi.advanceTimersByTime(990);
    expect(holder.decisions).toEqual([]);
    vi.advanceTimersByTime(20);
    expect(holder.decisions).toMatchObject([{ kind: "refused", reason: "queue_timeout" }]);
  });

  it("wakes when a prefill that nobody sees the end of is believed to be done", () => {
    const { balancer } = start(oneAtATime("waitingRequests"));
    balancer.decide({ ...request(10_000), isStreaming: false }, clock.nowMs(), [], nobody);
    const { holder } = hold(balancer, 20);
    // The prior of 8B on an H100: 10,000 tokens take a quarter of a second.
    vi.advanceTimersByTime(200);
    expect(holder.decisions).toEqual([]);
    vi.advanceTimersByTime(200);
    expect(holder.decisions).toMatchObject([{ kind: "routed" }]);
  });

  it("wakes once for many requests, and not at all while nobody is held", () => {
    const { balancer, tick } = start(oneAtATime(), 1_000);
    const first = send(balancer, 10);
    expect(vi.getTimerCount()).toBe(0);
    for (let i = 0; i < 50; i++) hold(balancer, 20);
    expect(vi.getTimerCount()).toBe(1);
    balancer.finish(first.lease, { kind: "completed" }, clock.nowMs());
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(10_000);
    expect(tick.calls).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("does not spin when the time named is over", () => {
    const { balancer, tick, wakesAtMs } = start();
    wakesAtMs(0);
    send(balancer, 10);
    hold(balancer, 20);
    vi.advanceTimersByTime(1_000);
    expect(tick.calls).toBeGreaterThan(0);
    expect(tick.calls).toBeLessThanOrEqual(200);
  });

  it("tells the holder of a request that had to go for another one, before that one is told to be held", () => {
    const { balancer } = start(oneAtATime(), 60_000, 1);
    send(balancer, 10);
    const late = hold(balancer, 20);
    const back = new Waiting();
    // It came before the other one, and failed elsewhere since.
    expect(balancer.decide(request(30), clock.nowMs(), [], back, clock.nowMs() - 5).kind).toBe("held");
    expect(late.holder.decisions).toMatchObject([{ kind: "refused", reason: "shed" }]);
    expect([balancer.heldRequests, balancer.heldBytes, balancer.heldByPriority.normal]).toEqual([1, 0, 1]);
  });

  it("refuses everybody when it is told to let go of them, and goes on", () => {
    const { balancer } = start();
    const first = send(balancer, 10);
    const held = [hold(balancer, 20), hold(balancer, 30)];
    balancer.releaseAll("shutting_down", clock.nowMs());
    for (const { holder } of held)
      expect(holder.decisions).toMatchObject([{ kind: "refused", reason: "shutting_down" }]);
    expect([balancer.heldRequests, balancer.refusals]).toEqual([0, { shutting_down: 2 }]);
    const { holder } = hold(balancer, 40);
    balancer.finish(first.lease, { kind: "completed" }, clock.nowMs());
    expect(holder.decisions).toMatchObject([{ kind: "routed" }]);
  });

  it("refuses who is held once it is closed, holds nobody then, and wakes no more", () => {
    const { balancer, tick } = start(oneAtATime(), 1_000);
    const first = send(balancer, 10);
    const { holder } = hold(balancer, 20);
    balancer.close();
    balancer.close();
    expect(holder.decisions).toMatchObject([{ kind: "refused", reason: "shutting_down" }]);
    const late = new Waiting();
    const decision = balancer.decide(request(30), clock.nowMs(), [], late);
    expect(decision).toMatchObject({ kind: "refused", reason: "shutting_down" });
    balancer.finish(first.lease, { kind: "completed" }, clock.nowMs());
    vi.advanceTimersByTime(2_000);
    expect([balancer.heldRequests, late.decisions]).toEqual([0, []]);
    expect([vi.getTimerCount(), tick.calls]).toEqual([0, 0]);
  });
});
