import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Asked, Serving } from "../../test/support/serving.ts";
import { Balancer, endpoint, type HoldingLimits, type Priority, seededRandom } from "../core/index.ts";
import { fairOrder } from "./fair-order.ts";

/** Endpoints with one cap, under policies that hold in lines of their own and in one for all. */
const POLICIES = ["least_delay", "least_connections"];

function serving(
  policy: string,
  caps: readonly number[],
  holding: Partial<HoldingLimits> = { maxWaitMs: Number.POSITIVE_INFINITY },
): Serving {
  const endpoints = caps.map((maxRequests, i) => endpoint({ id: `e${i}`, maxRequests }));
  return new Serving(new Balancer({ policy, endpoints, holding, whenFull: "hold", order: fairOrder() }));
}

const SMALL: Asked = { promptTokens: 10, outputTokens: 1 };

describe.each(POLICIES)("a crowded endpoint, under %s", (policy) => {
  it("serves in the order of priority, of whoever got least, and of arrival", () => {
    const desk = serving(policy, [1]);
    const ask = (tenant: string, priority: Priority) => desk.ask({ ...SMALL, tenant, priority });
    ask("a", "normal");
    const held = {
      low: ask("c", "low"),
      a1: ask("a", "normal"),
      a2: ask("a", "normal"),
      b1: ask("b", "normal"),
      high: ask("a", "high"),
    };
    for (let i = 0; i < 6; i++) desk.step(10);
    const order = Object.entries(held).toSorted(([, one], [, other]) => (one.sentAtMs ?? 0) - (other.sentAtMs ?? 0));
    // When the first ends `a` has got more than `b`, which came while `a` had got its first prompt alone.
    expect(order.map(([name]) => name)).toEqual(["high", "b1", "a1", "a2", "low"]);
  });

  it("lets a tenant in that asks for little, though another one floods it", () => {
    const desk = serving(policy, [2], { maxRequests: 20, maxWaitMs: 60_000 });
    for (let step = 0; step < 400; step++) {
      for (let i = 0; i < 5; i++) desk.ask({ promptTokens: 500, outputTokens: 4, tenant: "flood" });
      if (step % 8 === 0) desk.ask({ promptTokens: 500, outputTokens: 4, tenant: "quiet" });
      desk.step(50);
    }
    const quiet = desk.all.filter(({ asked }) => asked.tenant === "quiet").slice(0, -2);
    expect(quiet.map(({ refused }) => refused)).toEqual(quiet.map(() => undefined));
    const waits = quiet.map(({ sentAtMs = Number.POSITIVE_INFINITY, arrivedAtMs }) => sentAtMs - arrivedAtMs);
    // Of what is in flight one ends within four steps; then it is its turn, or next time.
    expect(Math.max(...waits)).toBeLessThanOrEqual(2 * 4 * 50);
    const fates = new Set(desk.all.map(({ refused }) => refused));
    expect(fates).toEqual(new Set([undefined, "queue_full", "shed"]));
  });

  it("gives two tenants that wait all the time the same, however different what they ask for", () => {
    const size = fc.record({
      promptTokens: fc.integer({ min: 1, max: 400 }),
      outputTokens: fc.integer({ min: 1, max: 40 }),
    });
    const cap = fc.integer({ min: 1, max: 4 });
    fc.assert(
      fc.property(cap, cap, size, size, fc.nat(), (capOne, capTwo, one, two, seed) => {
        const random = seededRandom(seed);
        const desk = serving(policy, [capOne, capTwo]);
        const most = { one, two };
        const draw = (max: number) => 1 + Math.floor(random.next() * max);
        const ask = (tenant: "one" | "two") => {
          const { promptTokens, outputTokens } = most[tenant];
          return desk.ask({ promptTokens: draw(promptTokens), outputTokens: draw(outputTokens), tenant });
        };
        const leads: number[] = [];
        for (let step = 0; step < 300; step++) {
          for (const tenant of ["one", "two"] as const) {
            const held = desk.all.filter(({ asked, ticket }) => asked.tenant === tenant && ticket !== undefined);
            for (let i = held.length; i < 3 + capOne + capTwo; i++) ask(tenant);
          }
          desk.step(10);
          leads.push(got(desk, "one") - got(desk, "two"));
        }
        const longest = Math.max(one.promptTokens, two.promptTokens);
        const answer = Math.max(one.outputTokens, two.outputTokens);
        const inFlight = (capOne + capTwo) * (longest + answer);
        // From when both wait: what one gains on the other between any two moments.
        const gain = Math.max(...leads.slice(5)) - Math.min(...leads.slice(5));
        expect(gain).toBeLessThanOrEqual(2 * Math.max(longest, 2 * inFlight));
      }),
      { seed: 1, numRuns: 25 },
    );
  });

  it("does not keep one back for ever that is less urgent, under endless load that is more so", () => {
    const desk = serving(policy, [1], { maxRequests: 50, maxWaitMs: 60_000, promoteAfterMs: 500 });
    let low: ReturnType<Serving["ask"]> | undefined;
    // Each takes a step, and two come with each: twice of what can be served.
    for (let step = 0; step < 200; step++) {
      for (let i = 0; i < 2; i++) desk.ask({ ...SMALL, priority: "high" });
      if (step === 10) low = desk.ask({ ...SMALL, priority: "low" });
      desk.step(100);
    }
    // After two promotions only those go first that came before it: ten.
    expect(low?.refused).toBeUndefined();
    expect((low?.sentAtMs ?? Number.POSITIVE_INFINITY) - 1000).toBeLessThanOrEqual(2 * 500 + 12 * 100);
  });

  it("tells one that is less urgent when it cannot be served in time", () => {
    const desk = serving(policy, [1], { maxWaitMs: 3000, promoteAfterMs: 60_000 });
    desk.ask(SMALL);
    const low = desk.ask({ ...SMALL, priority: "low" });
    for (let step = 0; step < 60; step++) {
      for (let i = 0; i < 2; i++) desk.ask({ ...SMALL, priority: "high" });
      desk.step(100);
    }
    expect(low).toMatchObject({ refused: "queue_timeout", sentAtMs: undefined });
  });

  it("has those leave at once that give up, and serves who stays first of all", () => {
    const desk = serving(policy, [1]);
    const running = desk.ask({ promptTokens: 10, outputTokens: 30 });
    const waiting = Array.from({ length: 100 }, (_, i) => desk.ask({ ...SMALL, tenant: `t${i % 7}` }));
    const stays = waiting[42];
    expect(desk.balancer.heldRequests).toBe(100);
    for (const each of waiting) if (each !== stays) desk.leave(each);
    expect(desk.balancer.heldRequests).toBe(1);
    for (let i = 0; i < 30; i++) desk.step(100);
    expect([running.endedAtMs, stays?.sentAtMs]).toEqual([3000, 3000]);
    desk.step(100);
    expect(desk.all.filter(({ sentAtMs }) => sentAtMs !== undefined)).toEqual([running, stays]);
    expect(desk.balancer.heldRequests).toBe(0);
  });
});

/** What was computed for a tenant, as its counter weighs it. */
function got(desk: Serving, tenant: string): number {
  return desk.all
    .filter(({ asked }) => asked.tenant === tenant)
    .reduce((sum, { promptTokens, outputTokens }) => sum + promptTokens + 2 * outputTokens, 0);
}
