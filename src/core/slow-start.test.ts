import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rampMoved, rampOf, SlowStart } from "./slow-start.ts";

const DURATION_MS = 30_000;

interface Warming {
  readonly endpoint: { readonly weight: number };
  readonly slowStart: SlowStart;
}

/** @param sinceMs When it began; undefined: it has always been there. */
function warming(sinceMs?: number, weight = 1): Warming {
  const slowStart = new SlowStart(DURATION_MS);
  if (sinceMs !== undefined) slowStart.begin(sinceMs);
  return { endpoint: { weight }, slowStart };
}

describe("warmth", () => {
  it.each([
    [0, 0.1],
    [15_000, 0.55],
    [29_999, 0.99997],
    [30_000, 1],
    [1e9, 1],
  ])("%d ms after its beginning is %d", (nowMs, expected) => {
    expect(warming(0).slowStart.warmthAt(nowMs)).toBeCloseTo(expected, 10);
  });

  it("is full where nothing began, and where nothing is to take time", () => {
    expect(warming().slowStart.warmthAt(0)).toBe(1);
    const atOnce = new SlowStart(undefined);
    atOnce.begin(100);
    expect(atOnce.warmthAt(100)).toBe(1);
  });

  it("is that of its beginning before it began", () => {
    expect(warming(100).slowStart.warmthAt(50)).toBe(0.1);
  });

  it("takes as long as was said last", () => {
    const { slowStart } = warming(0);
    slowStart.configure(3_000, 1_000);
    expect(slowStart.warmthAt(1_500)).toBeCloseTo(0.55, 10);
    slowStart.configure(300_000, 3_000);
    expect(slowStart.warmthAt(3_000)).toBe(1);
    slowStart.begin(4_000);
    expect(slowStart.warmthAt(154_000)).toBeCloseTo(0.55, 10);
  });
});

describe("a ramp", () => {
  it("is none where all have been there for long, or all came together", () => {
    expect(rampOf([], 0)).toBeUndefined();
    expect(rampOf([warming(), warming()], 0)).toBeUndefined();
    expect(rampOf([warming(0), warming(0)], 10)).toBeUndefined();
    expect(rampOf([warming(0)], 10)).toBeUndefined();
  });

  it("holds those back that are colder than the warmest", () => {
    const [old, young, younger] = [warming(0), warming(3_000), warming(6_000)];
    const ramp = rampOf([young, old, younger], 9_000);
    expect(ramp?.colder).toEqual([young, younger]);
    expect(ramp?.warmth).toBeCloseTo(0.37, 10);
    expect(ramp?.weight).toBe(3);
  });
});

/** Sends requests, one each `gapMs`, to the cold one whenever it may have one. @returns the times of those it had. */
function flood(cold: Warming, others: readonly Warming[], gapMs: number, untilMs: number): number[] {
  const had: number[] = [];
  const other = others[0] as Warming;
  for (let nowMs = 0; nowMs < untilMs; nowMs += gapMs) {
    const ramp = rampOf([cold, ...others], nowMs);
    const chosen = ramp === undefined || cold.slowStart.hasCredit ? cold : other;
    if (chosen === cold) had.push(nowMs);
    if (ramp !== undefined) rampMoved(ramp, chosen, nowMs);
  }
  return had;
}

describe("the share of a cold endpoint that everything would go to", () => {
  it("begins with a request at once and rises to the full share, exactly", () => {
    const had = flood(warming(0), [warming(), warming()], 10, 40_000);
    expect(had[0]).toBe(0);
    const inSecond = (second: number) => had.filter((ms) => Math.floor(ms / 1_000) === second).length;
    // 100 requests a second, a third of them would be its full share.
    expect(inSecond(0)).toBe(4);
    expect(inSecond(15)).toBeGreaterThanOrEqual(18);
    expect(inSecond(15)).toBeLessThanOrEqual(20);
    expect(inSecond(29)).toBeGreaterThanOrEqual(32);
    expect(inSecond(29)).toBeLessThanOrEqual(34);
    expect(inSecond(30)).toBe(100);
  });

  it("is measured by weight", () => {
    const quarter = flood(warming(0, 1), [warming(undefined, 3)], 1, 1_000).length;
    const half = flood(warming(0, 3), [warming(undefined, 3)], 1, 1_000).length;
    expect(half / quarter).toBeCloseTo(2, 0);
  });

  it("is nothing it could save up", () => {
    const [cold, old] = [warming(0), warming()];
    for (let i = 0; i < 10_000; i++) rampMoved(rampOf([cold, old], 29_000) as never, old, 29_000);
    let inARow = 0;
    for (; cold.slowStart.hasCredit; inARow++) rampMoved(rampOf([cold, old], 100) as never, cold, 100);
    expect(inARow).toBe(2);
  });

  it("is not owed back when it got a request without credit", () => {
    const [cold, old] = [warming(0), warming()];
    for (let i = 0; i < 50; i++) rampMoved(rampOf([cold, old], 29_000) as never, cold, 29_000);
    let others = 0;
    for (; !cold.slowStart.hasCredit; others++) rampMoved(rampOf([cold, old], 29_000) as never, old, 29_000);
    expect(others).toBeLessThanOrEqual(3);
  });

  it("is never above the ramp, in any stretch of requests, by more than two", () => {
    const others = fc.array(
      fc.record({
        sinceMs: fc.option(fc.integer({ min: -40_000, max: 0 }), { nil: undefined }),
        weight: fc.integer({ min: 1, max: 5 }),
      }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(
        others,
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.nat(2_000), { minLength: 1, maxLength: 150 }),
        fc.infiniteStream(fc.boolean()),
        (facts, weight, gaps, wanted) => {
          const cold = warming(0, weight);
          const rest = facts.map((fact) => warming(fact.sinceMs, fact.weight));
          const total = weight + rest.reduce((sum, { endpoint }) => sum + endpoint.weight, 0);
          // What it had beyond its share up to each request, and the least of that so far.
          let ahead = 0;
          let least = 0;
          let nowMs = 0;
          for (const gap of gaps) {
            nowMs += gap;
            const ramp = rampOf([cold, ...rest], nowMs);
            if (ramp === undefined || !ramp.colder.includes(cold)) continue;
            const chosen = cold.slowStart.hasCredit && wanted.next().value ? cold : (rest[0] as Warming);
            rampMoved(ramp, chosen, nowMs);
            ahead += (chosen === cold ? 1 : 0) - (cold.slowStart.warmthAt(nowMs) / ramp.warmth) * (weight / total);
            least = Math.min(least, ahead);
            expect(ahead - least).toBeLessThanOrEqual(2 + 1e-9);
          }
        },
      ),
    );
  });
});
