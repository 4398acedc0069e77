import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Breaker, type BreakerState, DEFAULT_EJECTION_OPTIONS, type EjectionOptions } from "./breaker.ts";
import { costOf } from "./cost.ts";
import { type Lease, Ledger } from "./ledger.ts";
import { requestProfile } from "./request.ts";

const REQUEST = requestProfile({ promptTokens: 10 });
const OPTIONS: EjectionOptions = { ...DEFAULT_EJECTION_OPTIONS, failures: 3, baseMs: 5_000, maxMs: 40_000 };

/** A breaker that opens as soon as it says so, and a clock. */
class Bench {
  nowMs = 0;
  readonly breaker: Breaker;
  readonly #ledger = new Ledger();

  constructor(options: EjectionOptions = OPTIONS) {
    this.breaker = new Breaker(options);
  }

  get state(): BreakerState {
    return this.breaker.stateAt(this.nowMs);
  }

  get admits(): boolean {
    return this.breaker.admits(this.nowMs);
  }

  begin(): Lease {
    const lease = this.#ledger.open("a", costOf(REQUEST, 0), REQUEST.output, this.nowMs);
    this.breaker.began(lease, this.nowMs);
    return lease;
  }

  end(lease: Lease): void {
    lease.close(this.nowMs);
    this.breaker.ended(lease);
  }

  succeed(lease = this.begin()): void {
    this.breaker.succeeded(lease, this.nowMs);
    this.end(lease);
  }

  fail(lease = this.begin()): void {
    if (this.breaker.failed(lease, this.nowMs)) this.breaker.open(this.nowMs);
    this.end(lease);
  }

  dismiss(lease = this.begin()): void {
    this.breaker.dismissed(lease);
    this.end(lease);
  }

  /** s: answered well, f: failed, n: neither, as a refusal for overload or a client's mistake. */
  play(results: string): this {
    for (const result of results) {
      if (result === "s") this.succeed();
      else if (result === "f") this.fail();
      else this.dismiss();
    }
    return this;
  }

  /** Until a trial is due. */
  rest(): this {
    this.nowMs = Math.max(this.nowMs, this.breaker.openUntilMs);
    return this;
  }
}

describe("opening", () => {
  it.each<[string, string, BreakerState]>([
    ["without any result", "", "closed"],
    ["after two failures of three", "ff", "closed"],
    ["after three failures in a row", "fff", "open"],
    ["when a success came between", "ffsff", "closed"],
    ["when a refusal or a client's mistake came between", "ffnf", "open"],
    ["whatever clients do wrong", "n".repeat(100), "closed"],
  ])("%s", (_, results, expected) => {
    expect(new Bench().play(results).state).toBe(expected);
  });

  it.each<[string, string, BreakerState]>([
    ["by half of the requests failing", "sf".repeat(10), "open"],
    ["not by fewer of them", "ssf".repeat(10), "closed"],
    ["not while there are too few to tell", "sf".repeat(9), "closed"],
    ["with refusals left out of the count", `${"sf".repeat(9)}${"n".repeat(20)}`, "closed"],
  ])("%s", (_, results, expected) => {
    expect(new Bench().play(results).state).toBe(expected);
  });

  it("forgets results that are older than the window", () => {
    const bench = new Bench().play("sf".repeat(9));
    bench.nowMs = 33_000;
    expect(bench.play("sf").state).toBe("closed");
    expect(bench.play("sf".repeat(9)).state).toBe("open");
  });

  it("counts results that trickle in over the window", () => {
    const bench = new Bench();
    for (let i = 0; i < 10; i++, bench.nowMs += 2_500) bench.play("sf");
    expect(bench.state).toBe("open");
  });

  it("counts a request that seemed well before it broke once, as a failure", () => {
    const bench = new Bench();
    for (let i = 0; i < 19; i++) {
      const lease = bench.begin();
      bench.breaker.succeeded(lease, 0);
      bench.fail(lease);
    }
    expect(bench.state).toBe("closed");
    expect(bench.play("f").state).toBe("open");
  });

  it("takes one result of a request", () => {
    const bench = new Bench();
    const lease = bench.begin();
    for (let i = 0; i < 5; i++) bench.fail(lease);
    expect(bench.play("f").state).toBe("closed");
    const good = bench.begin();
    bench.succeed(good);
    bench.play("ff");
    bench.succeed(good);
    expect(bench.play("f").state).toBe("open");
  });

  it("ignores a request that it was not told of", () => {
    const bench = new Bench();
    const stranger = new Ledger().open("a", costOf(REQUEST, 0), REQUEST.output, 0);
    for (let i = 0; i < 5; i++) bench.fail(stranger);
    expect(bench.state).toBe("closed");
  });
});

describe("an open breaker", () => {
  it("takes no requests until its time is over, and then one", () => {
    const bench = new Bench().play("fff");
    bench.nowMs = 4_999;
    expect([bench.state, bench.admits]).toEqual(["open", false]);
    bench.nowMs = 5_000;
    expect([bench.state, bench.admits]).toEqual(["half_open", true]);
    bench.begin();
    expect(bench.admits).toBe(false);
  });

  it.each<[string, (bench: Bench, old: Lease) => void]>([
    ["success", (bench, old) => bench.succeed(old)],
    ["failure", (bench, old) => bench.fail(old)],
  ])("is not moved by the %s of a request from before, whenever it comes", (_, settle) => {
    const bench = new Bench();
    const old = [bench.begin(), bench.begin(), bench.begin()];
    bench.play("fff");
    settle(bench, old[0] as Lease);
    expect([bench.state, bench.breaker.openings]).toEqual(["open", 1]);
    bench.rest();
    const trial = bench.begin();
    settle(bench, old[1] as Lease);
    expect([bench.state, bench.admits, bench.breaker.openings]).toEqual(["half_open", false, 1]);
    bench.succeed(trial);
    settle(bench, old[2] as Lease);
    expect(bench.play("ff").state).toBe("closed");
  });

  it("closes when a request that was sent all the same is answered well, and stays as it is when it fails", () => {
    const bench = new Bench().play("fff");
    bench.fail();
    expect([bench.state, bench.breaker.openings]).toEqual(["open", 1]);
    bench.succeed();
    expect(bench.state).toBe("closed");
  });
});

describe("a trial", () => {
  it("closes the breaker when it succeeds, with nothing left of what was held against it", () => {
    const bench = new Bench().play("fff").rest().play("s");
    expect(bench.state).toBe("closed");
    expect(bench.play("ff").state).toBe("closed");
    expect(bench.play("f").state).toBe("open");
  });

  it("opens it again when it fails, for twice as long each time, up to the limit", () => {
    const bench = new Bench().play("fff");
    const lasted: number[] = [];
    for (let i = 0; i < 5; i++) {
      lasted.push(bench.breaker.openUntilMs - bench.nowMs);
      bench.rest().play("f");
    }
    expect(lasted).toEqual([5_000, 10_000, 20_000, 40_000, 40_000]);
    expect(bench.breaker.openings).toBe(6);
  });

  it.each<[string, (bench: Bench, trial: Lease) => void]>([
    ["with a client's mistake or a refusal for overload", (bench, trial) => bench.dismiss(trial)],
    ["with the client leaving, which nobody told of", (bench, trial) => bench.end(trial)],
    ["with a failure", (bench, trial) => bench.fail(trial)],
    [
      "with an answer that broke after its first token",
      (bench, trial) => {
        bench.breaker.succeeded(trial, bench.nowMs);
        bench.fail(trial);
      },
    ],
  ])("gives its place back when it ends %s", (_, end) => {
    const bench = new Bench().play("fff").rest();
    end(bench, bench.begin());
    bench.rest();
    expect(bench.admits).toBe(true);
    bench.succeed();
    expect(bench.state).toBe("closed");
  });

  it("stays half-open by what is no result", () => {
    const bench = new Bench().play("fff").rest().play("nnn");
    expect([bench.state, bench.breaker.openings]).toEqual(["half_open", 1]);
  });

  it("gives its place up when it does not end, and still counts when it does", () => {
    const bench = new Bench().play("fff").rest();
    const hung = bench.begin();
    bench.nowMs += 29_999;
    expect(bench.admits).toBe(false);
    bench.nowMs += 1;
    expect(bench.admits).toBe(true);
    const next = bench.begin();
    bench.end(hung);
    expect(bench.admits).toBe(false);
    bench.succeed(next);
    expect(bench.state).toBe("closed");
  });

  it("counts when its result is told after its end", () => {
    const bench = new Bench().play("fff").rest();
    const trial = bench.begin();
    bench.end(trial);
    bench.fail(trial);
    expect([bench.state, bench.breaker.openings]).toEqual(["open", 2]);
  });
});

describe("how long it is out", () => {
  it.each([
    ["soon after it was back", 30_000 - 1, 10_000],
    ["after it was well for a while", 30_000, 5_000],
  ])("when it fails again %s", (_, wellMs, expectedMs) => {
    const bench = new Bench().play("fff").rest().play("s");
    bench.nowMs += wellMs;
    bench.play("fff");
    expect(bench.breaker.openUntilMs - bench.nowMs).toBe(expectedMs);
  });

  it("is remembered for as long as it was out, where that is longer than the window", () => {
    const bench = new Bench().play("fff");
    for (let i = 0; i < 3; i++) bench.rest().play("f");
    bench.rest().play("s");
    bench.nowMs += 39_999;
    bench.play("fff");
    expect(bench.breaker.openUntilMs - bench.nowMs).toBe(40_000);
  });
});

describe("a renewed endpoint", () => {
  it("has its trial at once", () => {
    const bench = new Bench().play("fff");
    const inFlight = bench.begin();
    bench.breaker.renew(bench.nowMs);
    expect([bench.state, bench.admits]).toEqual(["half_open", true]);
    bench.succeed(inFlight);
    expect(bench.state).toBe("half_open");
    expect(bench.play("s").state).toBe("closed");
  });

  it("is not closed by that, nor forgotten how long it was out", () => {
    const bench = new Bench().play("fff");
    bench.breaker.renew(bench.nowMs);
    bench.play("f");
    expect(bench.breaker.openUntilMs - bench.nowMs).toBe(10_000);
  });

  it("starts over when it was in", () => {
    const bench = new Bench().play("ff");
    const old = bench.begin();
    bench.breaker.renew(bench.nowMs);
    bench.fail(old);
    expect(bench.play("ff").state).toBe("closed");
  });
});

it("takes other numbers while it works", () => {
  const bench = new Bench().play("ff");
  bench.breaker.configure({ ...OPTIONS, failures: 4, windowMs: 1_000, baseMs: 1_000 });
  expect(bench.play("f").state).toBe("closed");
  expect(bench.play("f").state).toBe("open");
  expect(bench.breaker.openUntilMs).toBe(1_000);
});

describe("whatever happens in whatever order", () => {
  const event = fc.oneof(
    fc.constantFrom("begin", "rest", "renew"),
    fc.record({ kind: fc.constantFrom("succeed", "fail", "dismiss", "end", "prove"), at: fc.nat(20) }),
    fc.record({ kind: fc.constant("wait"), at: fc.nat(20_000) }),
  );

  it("loses no trial's place, lets one in at a time, and never counts what began before it opened", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 120 }), (events) => {
        const bench = new Bench();
        const open: Lease[] = [];
        let trials: Lease[] = [];
        for (const each of events) {
          if (each === "begin") {
            const wasTrial = bench.state === "half_open" && bench.admits;
            const lease = bench.begin();
            open.push(lease);
            if (wasTrial) trials.push(lease);
          } else if (each === "rest") bench.rest();
          else if (each === "renew") {
            bench.breaker.renew(bench.nowMs);
            trials = [];
          } else if (typeof each === "object" && each.kind === "wait") bench.nowMs += each.at;
          else if (typeof each === "object") {
            const [lease] = open.splice(each.at, 1);
            if (lease === undefined) continue;
            const isOld = lease.openedAtMs < bench.breaker.openedAtMs;
            const { openings } = bench.breaker;
            const before = bench.state;
            if (each.kind === "succeed") bench.succeed(lease);
            else if (each.kind === "fail") bench.fail(lease);
            else if (each.kind === "dismiss") bench.dismiss(lease);
            else if (each.kind === "end") bench.end(lease);
            else {
              bench.breaker.succeeded(lease, bench.nowMs);
              open.push(lease);
            }
            if (isOld) expect([bench.state, bench.breaker.openings]).toEqual([before, openings]);
          }
          if (bench.state === "closed") trials = [];
          trials = trials.filter((lease) => lease.isOpen && bench.nowMs - lease.openedAtMs < 30_000);
          expect(trials.length).toBeLessThanOrEqual(1);
        }
        for (const lease of open) bench.end(lease);
        bench.rest();
        expect(bench.admits).toBe(true);
        bench.succeed();
        expect(bench.state).toBe("closed");
      }),
      { numRuns: 500 },
    );
  });
});
