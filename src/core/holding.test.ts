import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyOrder } from "./hold-order.ts";
import { DEFAULT_HOLDING_LIMITS, Holding } from "./holding.ts";
import { HoldingLine } from "./holding-line.ts";
import { requestProfile } from "./request.ts";
import type { HoldingPlace, Ticket } from "./ticket.ts";

const REQUEST = requestProfile({ promptTokens: 100 });

function ticket(holding: Holding, heldAtMs = 0, bodyBytes = 0): Ticket {
  return holding.ticket(REQUEST, { tried: [], arrivedAtMs: heldAtMs, heldAtMs, bodyBytes });
}

function place(key: number, more: Partial<HoldingPlace> = {}): HoldingPlace {
  return { endpointId: "a", key, prefillTokens: 1, prefillPairs: 0.5, ...more };
}

function heldAt(holding: Holding, key: number, more: Partial<HoldingPlace> = {}): Ticket {
  const held = ticket(holding);
  holding.put(held, place(key, more));
  return held;
}

describe("a line", () => {
  it("has nobody in it at first", () => {
    const line = new HoldingLine();
    expect([line.requests, line.first, line.tickets()]).toEqual([0, undefined, []]);
    expect([line.aheadOf(1e9, 0), line.countBehind(0, 0)]).toEqual([{ prefillTokens: 0, prefillPairs: 0 }, 0]);
  });

  it("puts the smallest key first, and of equal keys who came first", () => {
    const holding = new Holding(DEFAULT_HOLDING_LIMITS);
    const [late, early, same, alsoSame] = [30, 10, 20, 20].map((key) => heldAt(holding, key));
    expect(holding.line("a").tickets()).toEqual([early, same, alsoSame, late]);
    expect(holding.line("a").first).toBe(early);
  });

  it("counts as ahead of a key what has a smaller one, as behind it what has a larger one", () => {
    const holding = new Holding(DEFAULT_HOLDING_LIMITS);
    for (const key of [10, 20, 20, 30]) heldAt(holding, key, { prefillTokens: key, prefillPairs: 10 * key });
    const line = holding.line("a");
    expect(line.aheadOf(10, 0)).toEqual({ prefillTokens: 0, prefillPairs: 0 });
    expect([line.aheadOf(20, 0), line.countBehind(20, 0)]).toEqual([{ prefillTokens: 10, prefillPairs: 100 }, 1]);
    expect([line.aheadOf(25, 0), line.countBehind(25, 0)]).toEqual([{ prefillTokens: 50, prefillPairs: 500 }, 1]);
    expect([line.aheadOf(99, 0), line.countBehind(5, 0)]).toEqual([{ prefillTokens: 80, prefillPairs: 800 }, 4]);
  });

  it("takes half of what other balancers hold there to be ahead of any key, as they last said", () => {
    const holding = new Holding(DEFAULT_HOLDING_LIMITS);
    const line = holding.line("a");
    line.adopt("other", { requests: 4, prefillTokens: 1000, prefillPairs: 5000 }, true, 0);
    line.adopt("other", { requests: 2, prefillTokens: 600, prefillPairs: 3000 }, true, 0);
    line.adopt("third", { requests: 2, prefillTokens: 400, prefillPairs: 1000 }, true, 0);
    heldAt(holding, 10, { prefillTokens: 7, prefillPairs: 70 });
    expect([line.requests, line.countBehind(5, 0)]).toEqual([5, 3]);
    expect(line.aheadOf(20, 0)).toEqual({ prefillTokens: 507, prefillPairs: 2070 });
    expect(line.own(4)).toEqual({
      requests: 1,
      prefillTokens: 7,
      prefillPairs: 70,
      first: { urgency: 0, keyAgoMs: -6 },
    });
    line.adopt("third", { requests: 0, prefillTokens: 0, prefillPairs: 0 }, true, 0);
    line.adopt("other", undefined, true, 0);
    expect([line.requests, line.aheadOf(20, 0)]).toEqual([1, { prefillTokens: 7, prefillPairs: 70 }]);
  });

  it("knows whose turn is before another balancer's first, by its own clock", () => {
    const line = new HoldingLine();
    const held = { requests: 1, prefillTokens: 7, prefillPairs: 70 };
    const isTurnAt = (key: number, urgency = 1) => line.isOthersTurn({ urgency, key });
    expect(isTurnAt(1e9)).toBe(false);
    line.adopt("other", { ...held, first: { urgency: 1, keyAgoMs: 40 } }, true, 1000);
    expect([isTurnAt(959), isTurnAt(960), isTurnAt(961)]).toEqual([false, false, true]);
    expect([isTurnAt(1e9, 2), isTurnAt(0, 0)]).toEqual([false, true]);
    line.adopt("third", { ...held, first: { urgency: 1, keyAgoMs: -500 } }, true, 1000);
    line.adopt("other", held, true, 1000);
    expect([isTurnAt(1500), isTurnAt(1501)]).toEqual([false, true]);
    line.adopt("third", undefined, true, 1000);
    line.adopt("other", { ...held, first: { urgency: 1, keyAgoMs: 40 } }, false, 1000);
    expect([line.requests, isTurnAt(1e9)]).toEqual([1, false]);
  });

  it("has no place for a ticket that is not held", () => {
    const line = new HoldingLine();
    const holding = new Holding(DEFAULT_HOLDING_LIMITS);
    line.add(heldAt(holding, 1));
    expect(() => line.add(ticket(holding))).toThrow("not held");
  });
});

describe("the order by the policy's key alone", () => {
  it("knows one tenant, that gets and claims nothing, and one urgency", () => {
    const [one, other] = ["one", "other"].map((tenant) => keyOrder.tenantOf({ ...REQUEST, tenant }));
    one?.charge(100, 10);
    one?.held(REQUEST);
    expect(other).toBe(one);
    expect([one?.servedTokens, one?.claimedTokens, one?.costOf(REQUEST)]).toEqual([0, 0, 0]);
    expect(keyOrder.urgencyOf({ ...REQUEST, priority: "high" })).toBe(keyOrder.topUrgency);
  });
});

describe("the holding", () => {
  it("is full at the number it is bounded by", () => {
    const holding = new Holding({ ...DEFAULT_HOLDING_LIMITS, maxRequests: 2, maxBytes: 0 });
    const first = heldAt(holding, 1);
    expect([holding.size, holding.hasRoomFor(0)]).toEqual([1, true]);
    heldAt(holding, 2, { endpointId: "b" });
    expect([holding.size, holding.hasRoomFor(0)]).toEqual([2, false]);
    holding.remove(first);
    expect([holding.size, holding.hasRoomFor(0)]).toEqual([1, true]);
  });

  it("has no room for bodies that add up to more than it is bounded by, until some have left", () => {
    const holding = new Holding({ ...DEFAULT_HOLDING_LIMITS, maxBytes: 1000 });
    const [first, second] = [600, 300].map((bytes) => ticket(holding, 0, bytes)) as [Ticket, Ticket];
    for (const each of [first, second, first]) holding.put(each, place(1));
    expect([holding.hasRoomFor(100), holding.hasRoomFor(101)]).toEqual([true, false]);
    holding.remove(first);
    expect([holding.hasRoomFor(700), holding.hasRoomFor(701)]).toEqual([true, false]);
  });

  it("moves a ticket from line to line without counting it twice", () => {
    const holding = new Holding(DEFAULT_HOLDING_LIMITS);
    const moved = heldAt(holding, 5);
    const other = heldAt(holding, 6);
    holding.put(moved, place(9, { endpointId: undefined }));
    expect(moved.place).toEqual(place(9, { endpointId: undefined }));
    expect([holding.size, holding.byPriority]).toEqual([2, { low: 0, normal: 2, high: 0 }]);
    expect(holding.line("a").tickets()).toEqual([other]);
    expect(holding.line(undefined).tickets()).toEqual([moved]);
    expect([...holding.lines()].map(({ requests }) => requests)).toEqual([1, 1]);
  });

  it("lets a ticket leave once", () => {
    const holding = new Holding(DEFAULT_HOLDING_LIMITS);
    const held = heldAt(holding, 5);
    expect(holding.remove(held)).toBe(true);
    expect([held.place, holding.size, holding.nextDueMs]).toEqual([undefined, 0, Number.POSITIVE_INFINITY]);
    expect(holding.remove(held)).toBe(false);
    expect(holding.size).toBe(0);
  });

  it("keeps the line of an endpoint until the endpoint leaves", () => {
    const holding = new Holding(DEFAULT_HOLDING_LIMITS);
    const line = holding.line("a");
    expect(holding.line("a")).toBe(line);
    holding.forget("a");
    expect(holding.line("a")).not.toBe(line);
  });

  it("lets go of who waited too long: first come, first out, whoever left before left out", () => {
    const holding = new Holding({ ...DEFAULT_HOLDING_LIMITS, maxWaitMs: 1000 });
    const held = [30, 10, 20, 20, 40].map((atMs) => {
      const one = ticket(holding, atMs);
      holding.put(one, place(1));
      return one;
    });
    const [third, first, gone, second, last] = held as [Ticket, Ticket, Ticket, Ticket, Ticket];
    holding.remove(gone);
    expect([holding.nextDueMs, holding.pass(1009)]).toEqual([1010, []]);
    expect(holding.pass(1030)).toEqual([first, second, third]);
    expect([holding.size, holding.nextDueMs, last.place]).toEqual([1, 1040, place(1)]);
  });

  it("is what sorted lists would make of the same events", () => {
    const key = fc.integer({ min: 0, max: 12 });
    const line = fc.constantFrom("a", "b", undefined);
    const event = fc.oneof(
      { weight: 4, arbitrary: fc.record({ put: key, at: line, tokens: fc.nat(100) }) },
      { weight: 3, arbitrary: fc.record({ move: fc.nat(), key, at: line, tokens: fc.nat(100) }) },
      { weight: 3, arbitrary: fc.record({ remove: fc.nat() }) },
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), key, (events, asked) => {
        const holding = new Holding(DEFAULT_HOLDING_LIMITS);
        // In order of arrival, and in order of the last move.
        const arrived: Ticket[] = [];
        const moved: Ticket[] = [];
        for (const [heldAtMs, happened] of events.entries()) {
          if ("put" in happened) {
            const held = ticket(holding, heldAtMs);
            arrived.push(held);
            moved.push(held);
            holding.put(held, placeOf(happened.put, happened.at, happened.tokens));
          } else {
            const nth = "move" in happened ? happened.move : happened.remove;
            const held = arrived[nth % Math.max(1, arrived.length)];
            if (held === undefined) continue;
            moved.splice(moved.indexOf(held), 1);
            if ("move" in happened) {
              moved.push(held);
              holding.put(held, placeOf(happened.key, happened.at, happened.tokens));
            } else {
              arrived.splice(arrived.indexOf(held), 1);
              holding.remove(held);
            }
          }
          const dueMs = (arrived[0]?.arrivedAtMs ?? Number.POSITIVE_INFINITY) + DEFAULT_HOLDING_LIMITS.maxWaitMs;
          expect([holding.size, holding.nextDueMs]).toEqual([arrived.length, dueMs]);
          for (const at of ["a", "b", undefined]) {
            const there = moved.filter((each) => each.place?.endpointId === at);
            const sorted = there.toSorted((one, other) => keyOf(one) - keyOf(other));
            expect(holding.line(at).tickets()).toEqual(sorted);
            const sum = (tickets: readonly Ticket[]) =>
              tickets.reduce((all, { place }) => all + (place?.prefillTokens ?? 0), 0);
            const ahead = sorted.filter((each) => keyOf(each) < asked);
            expect(holding.line(at).aheadOf(asked, 0)).toEqual({
              prefillTokens: sum(ahead),
              prefillPairs: 3 * sum(ahead),
            });
            expect(holding.line(at).countBehind(asked, 0)).toBe(sorted.filter((each) => keyOf(each) > asked).length);
            expect(holding.line(at).own(0)).toMatchObject({ requests: sorted.length, prefillTokens: sum(sorted) });
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});

function placeOf(key: number, endpointId: string | undefined, tokens: number): HoldingPlace {
  return { endpointId, key, prefillTokens: tokens, prefillPairs: 3 * tokens };
}

function keyOf({ place }: Ticket): number {
  return place?.key ?? Number.NaN;
}
