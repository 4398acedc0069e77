import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TestOrder } from "../../test/support/test-order.ts";
import { DueHeap } from "./due-heap.ts";
import { DEFAULT_HOLDING_LIMITS, Holding, type HoldingLimits } from "./holding.ts";
import { type RequestProfile, requestProfile } from "./request.ts";
import type { Ticket } from "./ticket.ts";

interface Known extends Partial<RequestProfile> {
  readonly key?: number;
  readonly arrivedAtMs?: number;
  readonly heldAtMs?: number;
  readonly bodyBytes?: number;
}

/** A holding, and tickets in it that are named by what is known of them. */
function start(limits: Partial<HoldingLimits> = {}) {
  const order = new TestOrder();
  const holding = new Holding({ ...DEFAULT_HOLDING_LIMITS, ...limits }, order);
  const ticket = ({ arrivedAtMs = 0, heldAtMs = arrivedAtMs, bodyBytes = 0, ...known }: Known): Ticket =>
    holding.ticket(requestProfile({ promptTokens: 10, ...known }), { tried: [], arrivedAtMs, heldAtMs, bodyBytes });
  const hold = (known: Known): Ticket => {
    const held = ticket(known);
    const key = known.key ?? held.arrivedAtMs;
    holding.put(held, { endpointId: "a", key, prefillTokens: 10, prefillPairs: 100 });
    return held;
  };
  return { order, holding, ticket, hold, line: holding.line("a") };
}

describe("a line of several tenants and urgencies", () => {
  it("has the more urgent first, then those of whom got least, then the smaller key", () => {
    const { order, holding, hold, line } = start();
    Object.assign(order.tenant("rich"), { servedTokens: 9 });
    const held = [
      hold({ priority: "normal", tenant: "rich", key: 1 }),
      hold({ priority: "normal", tenant: "poor", key: 3 }),
      hold({ priority: "normal", tenant: "poor", key: 2 }),
      hold({ priority: "low", tenant: "poor", key: 0 }),
      hold({ priority: "high", tenant: "rich", key: 9 }),
    ];
    const left = [];
    for (let { first } = line; first !== undefined; first = line.first) {
      left.push(held.indexOf(first));
      holding.remove(first);
    }
    expect(left).toEqual([4, 2, 1, 0, 3]);
    expect(line.classes).toEqual([]);
  });

  it("has who is first change with what tenants get", () => {
    const { order, hold, line } = start();
    const [one, two] = [hold({ tenant: "one", key: 1 }), hold({ tenant: "two", key: 2 })];
    expect(line.first).toBe(one);
    order.tenant("one").servedTokens = 5;
    expect([line.first, line.tickets()]).toEqual([two, [two, one]]);
  });

  it("finds the first of those that are asked for", () => {
    const { hold, line } = start();
    hold({ priority: "high", model: "x" });
    const [late, early] = [hold({ model: "y", key: 5, tenant: "t" }), hold({ model: "y", key: 4 })];
    expect(line.firstOf(({ request }) => request.model === "y")).toBe(early);
    expect(line.firstOf((ticket) => ticket === late)).toBe(late);
    expect(line.firstOf(() => false)).toBeUndefined();
  });

  it("counts as ahead what is more urgent, and what is as urgent and has a smaller key", () => {
    const { hold, line } = start();
    for (const priority of ["low", "normal", "high"] as const) {
      for (const tenant of ["one", "two"]) for (const key of [1, 2, 3]) hold({ priority, tenant, key });
    }
    const ahead = [0, 1, 2].map((urgency) => line.aheadOf(2, urgency).prefillTokens / 10);
    const pairs = [0, 1, 2].map((urgency) => line.aheadOf(2, urgency).prefillPairs / 100);
    const behind = [0, 1, 2].map((urgency) => line.countBehind(2, urgency));
    expect([ahead, pairs, behind]).toEqual([
      [14, 8, 2],
      [14, 8, 2],
      [2, 8, 14],
    ]);
    expect(line.own(0)).toMatchObject({ requests: 18, prefillTokens: 180, prefillPairs: 1800 });
  });
});

describe("a held request", () => {
  it("is one class more urgent after each span of waiting, up to the most urgent", () => {
    const { holding, hold, line } = start({ promoteAfterMs: 1000 });
    const low = hold({ priority: "low", arrivedAtMs: 0 });
    const high = hold({ priority: "high", arrivedAtMs: 500 });
    const urgencies = [999, 1000, 1999, 2000, 9000].map((atMs) => {
      holding.pass(atMs);
      return low.urgency;
    });
    expect(urgencies).toEqual([0, 1, 1, 2, 2]);
    expect([line.first, line.classes.length, high.urgency]).toEqual([low, 1, 2]);
    expect(holding.nextDueMs).toBe(DEFAULT_HOLDING_LIMITS.maxWaitMs);
  });

  it("takes along what it waited before it was sent and came back", () => {
    const { ticket } = start({ promoteAfterMs: 1000 });
    const back = ticket({ priority: "low", arrivedAtMs: 100, heldAtMs: 1100 });
    expect([back.urgency, back.dueMs]).toEqual([1, 2100]);
    expect(ticket({ priority: "low", arrivedAtMs: 100, heldAtMs: 1099 }).urgency).toBe(0);
  });

  it("ends its wait at its deadline, though it would be more urgent by then", () => {
    const { holding, hold } = start({ promoteAfterMs: 1000, maxWaitMs: 1000 });
    const held = hold({ priority: "low" });
    expect([holding.pass(1000), held.urgency, held.place]).toEqual([[held], 0, undefined]);
  });

  it("is counted by what it came with, and among those ahead by how urgent it is", () => {
    const { holding, hold } = start({ promoteAfterMs: 1000 });
    for (const priority of ["low", "low", "high"] as const) hold({ priority });
    expect([2, 1, 0].map((urgency) => holding.countAhead(urgency))).toEqual([1, 1, 3]);
    holding.pass(1000);
    expect([2, 1, 0].map((urgency) => holding.countAhead(urgency))).toEqual([1, 3, 3]);
    expect(holding.byPriority).toEqual({ low: 2, normal: 0, high: 1 });
  });

  it("goes when its turn comes among all that are held: by urgency, then by what tenants got", () => {
    const { order, holding, hold } = start();
    order.tenant("rich").servedTokens = 9;
    const [low, rich, poor] = [hold({ priority: "low" }), hold({ tenant: "rich" }), hold({ tenant: "poor" })];
    const elsewhere = holding.ticket(requestProfile({ promptTokens: 1, priority: "high" }), {
      tried: [],
      arrivedAtMs: 9,
      heldAtMs: 9,
      bodyBytes: 0,
    });
    holding.put(elsewhere, { endpointId: "b", key: 9, prefillTokens: 1, prefillPairs: 1 });
    expect(holding.tickets()).toEqual([elsewhere, poor, rich, low]);
  });
});

describe("a newcomer to a full holding", () => {
  type Case = readonly [string, readonly Known[], Known, number | undefined];
  const cases: readonly Case[] = [
    ["goes where all are as urgent and of its tenant", [{}, {}], {}, undefined],
    ["goes where all are more urgent", [{ priority: "high" }], { priority: "normal" }, undefined],
    ["displaces one that is less urgent", [{ priority: "low" }, {}], {}, 0],
    ["displaces the least urgent first", [{}, { priority: "low" }], { priority: "high" }, 1],
    ["displaces of the less urgent whoever came last", [{ arrivedAtMs: 1 }, { arrivedAtMs: 2 }], HIGH(3), 1],
    ["displaces of equals whoever was held last", [{ key: 5 }, { key: 1 }], HIGH(3), 1],
    ["displaces of the less urgent whose tenant claims most", [{ tenant: "rich" }, {}], HIGH(3), 0],
    ["displaces one whose tenant claims more than its own", [{ tenant: "rich" }, {}], { tenant: "poor" }, 0],
    ["goes where its own tenant claims more than theirs", [{ tenant: "poor" }, {}], { tenant: "rich" }, undefined],
    ["goes where tenants claim the same", [{ tenant: "one" }, { tenant: "two" }], { tenant: "three" }, undefined],
    [
      "displaces a later one of its tenant, if it came first and failed elsewhere since",
      [{ arrivedAtMs: 1 }, { arrivedAtMs: 5 }],
      { arrivedAtMs: 3, heldAtMs: 9 },
      1,
    ],
    ["goes if it came last of all, though it failed elsewhere since", [{}], { arrivedAtMs: 3, heldAtMs: 9 }, undefined],
  ];

  function HIGH(arrivedAtMs: number): Known {
    return { priority: "high", arrivedAtMs };
  }

  it.each(cases)("%s", (_, known, newcomer, displaced) => {
    const { order, holding, ticket, hold } = start({ maxRequests: known.length });
    order.tenant("rich").claimedTokens = 1000;
    order.tenant("poor").claimedTokens = -1000;
    const held = known.map(hold);
    const coming = ticket({ heldAtMs: 9, arrivedAtMs: 9, ...newcomer });
    expect(holding.canTake(coming)).toBe(displaced !== undefined);
    expect(holding.size).toBe(held.length);
    const expected = displaced === undefined ? undefined : [held[displaced]];
    expect(holding.makeRoomFor(coming)).toEqual(expected);
    expect(holding.size).toBe(held.length - (expected?.length ?? 0));
  });

  it("is not let in for being smaller than what others wait for", () => {
    const { order, holding, ticket, hold } = start({ maxRequests: 1 });
    hold({ tenant: "one", promptTokens: 9000 });
    order.tenant("one").claimedTokens = 9000;
    expect(holding.makeRoomFor(ticket({ tenant: "two", promptTokens: 10 }))).toBeUndefined();
  });

  it("displaces as many as its body takes the room of, or nobody", () => {
    const { holding, ticket, hold, line } = start({ maxBytes: 1000 });
    const low = [1, 2, 3].map((arrivedAtMs) => hold({ priority: "low", arrivedAtMs, bodyBytes: 200 }));
    const high = hold({ priority: "high", bodyBytes: 400 });
    expect(holding.makeRoomFor(ticket({ bodyBytes: 601 }))).toBeUndefined();
    expect([holding.size, holding.bytes, line.tickets().length]).toEqual([4, 1000, 4]);
    const tooLarge = ticket({ priority: "high", bodyBytes: 1001 });
    expect([holding.canTake(tooLarge), holding.makeRoomFor(tooLarge)]).toEqual([false, undefined]);
    expect(holding.makeRoomFor(ticket({ bodyBytes: 400 }))).toEqual([low[2], low[1]]);
    expect([holding.bytes, high.place === undefined, low[0]?.place === undefined]).toEqual([600, false, false]);
  });
});

describe("a heap of tickets by when they are due", () => {
  it("has at hand whoever is due first, whoever came or went", () => {
    const { ticket } = start({ maxWaitMs: Number.POSITIVE_INFINITY, promoteAfterMs: Number.POSITIVE_INFINITY });
    const event = fc.oneof(
      fc.record({ add: fc.oneof(fc.nat(20), fc.constant(undefined)) }),
      fc.record({ remove: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80 }), (events) => {
        const heap = new DueHeap();
        const inside: Ticket[] = [];
        for (const happened of events) {
          if ("add" in happened) {
            const added = ticket({ patienceMs: happened.add });
            heap.add(added);
            inside.push(added);
          } else {
            const [removed] = inside.splice(happened.remove % Math.max(1, inside.length), 1);
            if (removed === undefined) continue;
            heap.remove(removed);
            heap.remove(removed);
          }
          const due = inside.filter(({ dueMs }) => dueMs < Number.POSITIVE_INFINITY);
          const first = due.toSorted((one, other) => one.dueMs - other.dueMs || one.number - other.number)[0];
          expect(heap.first).toBe(first);
        }
      }),
      { numRuns: 300 },
    );
  });
});
