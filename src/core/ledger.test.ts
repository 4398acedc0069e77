import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Account, RECENT_PREFILL_MS } from "./account.ts";
import { type Cost, costOf } from "./cost.ts";
import { PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { type Lease, Ledger } from "./ledger.ts";
import { fixedOutput, MIN_REMAINING_TOKENS } from "./output-expectation.ts";
import { requestProfile } from "./request.ts";

const IDLE = {
  requests: 0,
  waitingRequests: 0,
  waitingPrefillTokens: 0,
  waitingPrefillPairs: 0,
  waitingPromptTokens: 0,
  runningRequests: 0,
  contextTokens: 0,
  outputTokens: 0,
};

/** What an account holds, without its times. */
function holdings(account: Account): typeof IDLE {
  const names = Object.keys(IDLE) as (keyof typeof IDLE)[];
  return Object.fromEntries(names.map((name) => [name, account[name]])) as typeof IDLE;
}

/** What the open ones of `leases` hold, added up from what each says of itself. */
function sumOf(leases: Iterable<Lease>): typeof IDLE {
  const sum = { ...IDLE };
  for (const lease of leases) {
    if (!lease.isOpen) continue;
    sum.requests++;
    sum.outputTokens += lease.remainingTokens;
    if (lease.isRunning) {
      sum.runningRequests++;
      sum.contextTokens += lease.cost.promptTokens + lease.generatedTokens;
    } else {
      sum.waitingRequests++;
      sum.waitingPrefillTokens += lease.cost.prefillTokens;
      sum.waitingPrefillPairs += lease.cost.prefillPairs;
      sum.waitingPromptTokens += lease.cost.promptTokens;
    }
  }
  return sum;
}

function cost(promptTokens: number, cachedTokens = 0, expectedOutputTokens = 100): Cost {
  return costOf(requestProfile({ promptTokens, expectedOutputTokens }), cachedTokens);
}

function open(ledger: Ledger, nowMs = 0, asked: Cost = cost(1000), id = "a"): Lease {
  return ledger.open(id, asked, fixedOutput(asked.decodeTokens), nowMs);
}

describe("a lease", () => {
  it("waits with its prefill, then runs with its context, then leaves nothing", () => {
    const ledger = new Ledger();
    const account = ledger.account("a");
    const lease = open(ledger, 5, cost(1000, 400));
    expect(holdings(account)).toEqual({
      ...IDLE,
      requests: 1,
      waitingRequests: 1,
      waitingPrefillTokens: 600,
      waitingPrefillPairs: 600 * 400 + 180_000,
      waitingPromptTokens: 1000,
      outputTokens: 100,
    });
    lease.firstToken(20);
    lease.progress(9, 30);
    expect(holdings(account)).toEqual({
      ...IDLE,
      requests: 1,
      runningRequests: 1,
      contextTokens: 1010,
      outputTokens: 90,
    });
    expect(lease).toMatchObject({ openedAtMs: 5, firstTokenAtMs: 20, lastProgressMs: 30, generatedTokens: 10 });
    expect(lease.close(40)).toBe(true);
    expect(holdings(account)).toEqual(IDLE);
    expect([lease.isOpen, lease.isRunning, lease.remainingTokens]).toEqual([false, false, 0]);
  });

  it("closes once: later calls of any kind change nothing", () => {
    const ledger = new Ledger();
    const account = ledger.account("a");
    const other = open(ledger);
    const lease = open(ledger);
    lease.firstToken(1);
    expect(lease.close(2)).toBe(true);
    const after = holdings(account);
    expect(lease.close(3)).toBe(false);
    lease.firstToken(4);
    lease.progress(10, 5);
    expect(holdings(account)).toEqual(after);
    expect(other.isOpen).toBe(true);
  });

  it("shows its first token once", () => {
    const lease = open(new Ledger());
    lease.firstToken(10);
    lease.firstToken(20);
    expect([lease.firstTokenAtMs, lease.generatedTokens]).toEqual([10, 1]);
  });

  it("does not count progress before its first token", () => {
    const lease = open(new Ledger());
    lease.progress(5, 10);
    expect([lease.generatedTokens, lease.lastProgressMs, lease.remainingTokens]).toEqual([0, 0, 100]);
  });

  it("counts for the floor when it outlives its estimate, until it ends", () => {
    const ledger = new Ledger();
    const account = ledger.account("a");
    const lease = open(ledger, 0, cost(10, 0, 500));
    lease.firstToken(0);
    lease.progress(20_000, 1);
    expect(account.outputTokens).toBe(MIN_REMAINING_TOKENS);
    lease.close(2);
    expect(account.outputTokens).toBe(0);
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])(
    "refuses progress of %d tokens and stays as it was",
    (tokens) => {
      const ledger = new Ledger();
      const lease = open(ledger);
      lease.firstToken(1);
      const before = holdings(ledger.account("a"));
      expect(() => lease.progress(tokens, 2)).toThrow(RangeError);
      expect(holdings(ledger.account("a"))).toEqual(before);
      expect(lease.generatedTokens).toBe(1);
    },
  );

  it("refuses an expectation that is not a number, and stays as it was", () => {
    const ledger = new Ledger();
    const lease = ledger.open("a", cost(10), { meanTokens: 1, remainingAfter: () => Number.NaN }, 0);
    expect(() => lease.firstToken(1)).toThrow(RangeError);
  });

  it.each([{ prefillTokens: -1 }, { prefillPairs: 0.3 }, { promptTokens: Number.NaN }, { decodeTokens: 1.5 }])(
    "is not opened for a cost with %j",
    (wrong) => {
      const ledger = new Ledger();
      const account = ledger.account("a");
      expect(() => ledger.open("a", { ...cost(10), ...wrong }, fixedOutput(10), 0)).toThrow(RangeError);
      expect(holdings(account)).toEqual(IDLE);
    },
  );
});

describe("an account", () => {
  it("names the request that has waited longest, also when equal costs are one object", () => {
    const ledger = new Ledger();
    const account = ledger.account("a");
    const shared = cost(10);
    const [first, second] = [open(ledger, 0, shared), open(ledger, 1, shared)];
    const third = open(ledger, 2, cost(30));
    second.close(3);
    expect(account.oldestWaiting).toBe(first.cost);
    first.firstToken(4);
    expect(account.oldestWaiting).toBe(third.cost);
    third.close(5);
    expect(account.oldestWaiting).toBeUndefined();
  });

  it("dates prefill from the start of the backlog, the last first token, or the end of the first in line", () => {
    const ledger = new Ledger();
    const account = ledger.account("a");
    const [a, b, c, d] = [10, 20, 30, 40].map((nowMs) => open(ledger, nowMs)) as [Lease, Lease, Lease, Lease];
    expect(account.prefillSinceMs).toBe(10);
    a.firstToken(50);
    expect(account.prefillSinceMs).toBe(50);
    c.close(60);
    expect(account.prefillSinceMs).toBe(50);
    b.close(70);
    expect(account.prefillSinceMs).toBe(70);
    d.firstToken(65);
    expect(account.prefillSinceMs).toBe(70);
    open(ledger, 100);
    expect(account.prefillSinceMs).toBe(100);
  });

  it("lets recent prefill fade, whatever became of the requests", () => {
    const ledger = new Ledger();
    const account = ledger.account("a");
    open(ledger, 1000).close(1000);
    const recentMs = (nowMs: number): number => account.recentPrefillMs(PRIOR_COEFFICIENTS, nowMs);
    const wholeMs = prefillMs(PRIOR_COEFFICIENTS, 1000, 500_000);
    expect(recentMs(1000)).toBeCloseTo(wholeMs, 9);
    expect(recentMs(1000 + RECENT_PREFILL_MS)).toBeCloseTo(wholeMs / Math.E, 9);
    open(ledger, 1000 + RECENT_PREFILL_MS);
    expect(recentMs(1000 + RECENT_PREFILL_MS)).toBeCloseTo(wholeMs + wholeMs / Math.E, 9);
  });

  it("keeps its own recent prefill when the endpoint leaves, however long ago others told of theirs", () => {
    const ledger = new Ledger();
    open(ledger, 0);
    ledger.adopt("a", "other", ledger.own("a", 0), true, 0);
    const hoursLaterMs = 1e8;
    open(ledger, hoursLaterMs);
    const ownTokens = () => ledger.own("a", hoursLaterMs).recentPrefillTokens;
    expect(ownTokens()).toBeCloseTo(1000, 6);
    ledger.forget("a");
    expect(ownTokens()).toBeCloseTo(1000, 6);
    expect(ledger.account("a").recentPrefillMs(PRIOR_COEFFICIENTS, hoursLaterMs)).toBeCloseTo(
      prefillMs(PRIOR_COEFFICIENTS, 1000, 500_000),
      6,
    );
  });

  it("equals the sum of its open leases at every step, whatever happens to them", () => {
    const event = fc.record({
      kind: fc.constantFrom("open", "open", "firstToken", "progress", "close", "forget", "return"),
      id: fc.constantFrom("a", "b"),
      which: fc.nat(1000),
      tokens: fc.nat(300),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (events) => {
        const ledger = new Ledger();
        const leases: Record<string, Lease[]> = { a: [], b: [] };
        for (const [nowMs, { kind, id, which, tokens }] of events.entries()) {
          const own = leases[id] as Lease[];
          const lease = own[which % Math.max(1, own.length)];
          if (kind === "open") own.push(open(ledger, nowMs, cost(which, tokens, tokens), id));
          else if (kind === "firstToken") lease?.firstToken(nowMs);
          else if (kind === "progress") lease?.progress(tokens, nowMs);
          else if (kind === "close") lease?.close(nowMs);
          else if (kind === "forget") ledger.forget(id);
          if (kind !== "forget") expect(holdings(ledger.account(id))).toEqual(sumOf(own));
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("an endpoint that leaves and returns", () => {
  it("gets its account back with the work that still runs there", () => {
    const ledger = new Ledger();
    const before = ledger.account("a");
    const old = Array.from({ length: 5 }, () => open(ledger));
    ledger.forget("a");
    const after = ledger.account("a");
    expect(after).toBe(before);
    open(ledger);
    open(ledger);
    expect(after.requests).toBe(7);
    for (const lease of old) lease.close(1);
    expect(after.requests).toBe(2);
  });

  it("starts anew when its work had ended, and the old account stays at nothing", () => {
    const ledger = new Ledger();
    const before = ledger.account("a");
    const lease = open(ledger);
    ledger.forget("a");
    lease.close(1);
    const after = ledger.account("a");
    expect(after).not.toBe(before);
    open(ledger, 2);
    expect([before.requests, after.requests]).toEqual([0, 1]);
  });

  it("is kept when it returned before its work ended", () => {
    const ledger = new Ledger();
    const lease = open(ledger);
    ledger.forget("a");
    const account = ledger.account("a");
    lease.close(1);
    expect(ledger.account("a")).toBe(account);
  });

  it("is dropped at once when nothing runs there, known or not", () => {
    const ledger = new Ledger();
    const before = ledger.account("a");
    ledger.forget("a");
    ledger.forget("never seen");
    expect(ledger.account("a")).not.toBe(before);
  });
});
