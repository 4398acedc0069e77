import { describe, expect, it } from "vitest";
import { emptyPool } from "../../test/support/fleet.ts";
import { costOf } from "./cost.ts";
import { endpoint } from "./endpoint.ts";
import { Flight, firstTokenDueMs } from "./flight.ts";
import { keyOrder } from "./hold-order.ts";
import { type Lease, Ledger } from "./ledger.ts";
import type { Member } from "./member.ts";
import { type RequestProfile, requestProfile } from "./request.ts";

const seen = requestProfile({ promptTokens: 2000, expectedOutputTokens: 100 });

/** An idle endpoint, and the requests sent there. */
class Place {
  readonly #ledger = new Ledger();
  readonly #pool = emptyPool(this.#ledger);

  get member(): Member {
    const [member] = this.#pool.members;
    if (member === undefined) throw new Error("the pool is empty");
    return member;
  }

  constructor() {
    this.#pool.setEndpoints([endpoint({ id: "a" })]);
  }

  open(request: RequestProfile, nowMs: number): Lease {
    return this.#ledger.open("a", costOf(request, 0), request.output, nowMs);
  }

  fly(request: RequestProfile, nowMs: number): Flight {
    const dueMs = firstTokenDueMs(this.member, costOf(request, 0), nowMs);
    return new Flight(request, this.open(request, nowMs), this.member, dueMs, keyOrder.tenantOf(request));
  }
}

describe("the first token that is not seen", () => {
  const cost = costOf(seen, 0);

  it("is due after its own prefill and a step at an idle endpoint", () => {
    const { member } = new Place();
    const ownMs = member.speed.prefillMs(cost.prefillTokens, cost.prefillPairs);
    expect(firstTokenDueMs(member, cost, 1000)).toBeCloseTo(1000 + ownMs + member.speed.decodeStepMs(0, 0), 9);
  });

  it("is due after what waits there, as far as that is not done", () => {
    const place = new Place();
    const { member } = place;
    const ownMs = member.speed.prefillMs(cost.prefillTokens, cost.prefillPairs);
    const stepMs = member.speed.decodeStepMs(0, 0);
    place.open(seen, 1000);
    place.open(seen, 1000);
    expect(firstTokenDueMs(member, cost, 1010)).toBeCloseTo(1000 + 3 * ownMs + stepMs, 9);
    // Overdue work is taken to be over.
    expect(firstTokenDueMs(member, cost, 9000)).toBeCloseTo(9000 + ownMs + stepMs, 9);
  });
});

describe("a flight", () => {
  it.each([
    [{ isStreaming: true }, false],
    [{ isStreaming: false }, true],
    [{ isStreaming: false, expectedOutputTokens: 0 }, false],
  ])("of %j is unseen: %s", (how, isUnseen) => {
    expect(new Place().fly(requestProfile({ promptTokens: 10, ...how }), 0).isUnseen).toBe(isUnseen);
  });

  it("teaches its endpoint decoding from what was seen, even when it was cut", () => {
    const place = new Place();
    const flight = place.fly(seen, 0);
    flight.firstToken(100);
    for (let token = 1; token <= 20; token++) flight.progress(1, 100 + 10 * token);
    flight.finish({ kind: "aborted" }, 60_000);
    // 20 tokens, 10 ms each; the prior takes 7.3 ms.
    expect(place.member.speed.decodeScale).toBeCloseTo(10 / 7.3, 1);
  });

  it("teaches nothing when it ends before its first token", () => {
    const place = new Place();
    const flight = place.fly(seen, 0);
    flight.progress(5, 10);
    flight.finish({ kind: "failed" }, 100);
    expect(place.member.speed.samples).toBe(0);
    expect(place.member.account.requests).toBe(0);
  });
});

describe("a request's tokens", () => {
  const STEP_MS = 30;

  it.each([
    ["one by one", [1]],
    ["some at a time", [4]],
    ["unevenly, or none with a chunk", [3, 0, 2, 0, 0, 1]],
    ["late, as the engine counts them, after the chunks that brought them", [0, 0, 0, 0, 20]],
  ])("teach the same speed when they are told %s", (_, pattern) => {
    const place = new Place();
    const flight = place.fly(requestProfile({ promptTokens: 1, expectedOutputTokens: 2000 }), 0);
    flight.firstToken(0);
    const callMs = (STEP_MS * pattern.reduce((sum, tokens) => sum + tokens, 0)) / pattern.length;
    const calls = (2000 * STEP_MS) / callMs;
    for (let call = 0; call < calls; call++) flight.progress(pattern[call % pattern.length] ?? 0, (call + 1) * callMs);
    expect(Math.abs(Math.log(place.member.speed.decodeStepMs(1, 1000) / STEP_MS))).toBeLessThan(0.1);
  });
});
