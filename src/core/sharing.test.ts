import { describe, expect, it } from "vitest";
import { mustBeRouted, routedNow } from "../../test/support/decisions.ts";
import { reportBatches } from "../../test/support/engine-signals.ts";
import { times } from "../../test/support/fleet.ts";
import { RECENT_PREFILL_MS } from "./account.ts";
import { Balancer } from "./balancer.ts";
import { endpoint } from "./endpoint.ts";
import { PRIOR_COEFFICIENTS } from "./engine-coefficients.ts";
import type { Lease } from "./ledger.ts";
import type { Member } from "./member.ts";
import { requestProfile } from "./request.ts";

const chat = requestProfile({ promptTokens: 1000, expectedOutputTokens: 100 });
const prefix = { hashes: [1, 2, 3, 4], tokensPerBlock: 64 };
const cached = requestProfile({ promptTokens: 300, expectedOutputTokens: 10, prefix });

function balancerOf(...ids: readonly string[]): Balancer {
  const balancer = new Balancer({ endpoints: ids.map((id) => endpoint({ id })) });
  reportBatches(balancer);
  return balancer;
}

/** Sends at once, whatever waits. */
function randomly(id: string): Balancer {
  return new Balancer({ endpoints: [endpoint({ id, kvCapacityTokens: 1000 })], policy: "random" });
}

/** What it believes of its endpoints. */
function stateOf(balancer: Balancer): unknown {
  return balancer.members.map(({ account, held, kvTokens, mirror, observer }) => {
    const { sharedTokens, evictableTokens, size } = mirror;
    return { account, held: held.requests, kvTokens, sharedTokens, evictableTokens, size, timer: observer.decoding(0) };
  });
}

function memberOf(balancer: Balancer, id = "a"): Member {
  const found = balancer.members.find((member) => member.endpoint.id === id);
  if (found === undefined) throw new RangeError(id);
  return found;
}

describe("what a balancer tells the others", () => {
  it("is what it has in flight at each endpoint, holds for it, and had computed there", () => {
    const balancer = balancerOf("a");
    const running = routedNow(balancer, cached, 0).lease;
    balancer.firstToken(running, 10);
    routedNow(balancer, cached, 20);
    routedNow(balancer, requestProfile({ promptTokens: 4000, expectedOutputTokens: 50 }), 30);
    expect(balancer.decide(chat, 40).kind).toBe("held");
    expect(balancer.share(40).endpoints).toMatchObject({
      a: {
        account: {
          requests: 3,
          waitingRequests: 2,
          runningRequests: 1,
          waitingPrefillTokens: 4044,
          waitingPromptTokens: 4300,
          contextTokens: 301,
        },
        held: { requests: 1, prefillTokens: 1000, prefillPairs: 500_000 },
        done: { tokens: 300, pairs: 45_000, steps: 1 },
      },
    });
  });

  it("leaves out what others told it", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    other.share(0);
    const leases = times(3, () => routedNow(other, chat, 0).lease);
    const before = one.share(0);
    other.firstToken(leases[0] as Lease, 0);
    one.adopt("other", other.share(0), 0);
    expect(one.share(0)).toEqual({ ...before, sequence: 2 });
    routedNow(one, chat, 0);
    expect(one.share(5000).endpoints).toMatchObject({ a: { account: { requests: 1, waitingPrefillTokens: 1000 } } });
    const { recentPrefillTokens } = one.share(5000).endpoints.a?.account ?? {};
    expect(recentPrefillTokens).toBeCloseTo(1000 * Math.exp(-5000 / RECENT_PREFILL_MS), 6);
  });

  it("is numbered, message by message", () => {
    const balancer = balancerOf("a");
    expect(times(3, () => balancer.share(0).sequence)).toEqual([1, 2, 3]);
  });

  it("says how long ago prefill moved on", () => {
    const balancer = balancerOf("a");
    const { lease } = routedNow(balancer, chat, 100);
    expect(balancer.share(150).endpoints.a?.account.prefillMovedAgoMs).toBe(50);
    balancer.firstToken(lease, 170);
    expect(balancer.share(180).endpoints.a?.account.prefillMovedAgoMs).toBe(10);
  });

  it("names what was sent and what ended since it was last asked, in order, from the first time on", () => {
    const balancer = balancerOf("a");
    const unnamed = routedNow(balancer, cached, 0).lease;
    expect(balancer.share(0).cache).toEqual([]);
    const [first, second] = [cached, chat].map((request) => routedNow(balancer, request, 1).lease) as [Lease, Lease];
    balancer.finish(unnamed, { kind: "completed" }, 2);
    expect(balancer.share(2).cache).toEqual([
      { kind: "sent", request: 1, endpointId: "a", prefix, promptTokens: 300 },
      { kind: "sent", request: 2, endpointId: "a", prefix: undefined, promptTokens: 1000 },
    ]);
    balancer.firstToken(second, 3);
    balancer.progress(second, 4, 4);
    balancer.finish(second, { kind: "aborted" }, 5);
    balancer.finish(first, { kind: "aborted" }, 6);
    balancer.finish(routedNow(balancer, cached, 7).lease, { kind: "completed" }, 8);
    expect(balancer.share(9).cache).toEqual([
      { kind: "ended", request: 2, generatedTokens: 5, isComputed: true },
      { kind: "ended", request: 1, generatedTokens: 0, isComputed: false },
      { kind: "sent", request: 3, endpointId: "a", prefix, promptTokens: 300 },
      { kind: "ended", request: 3, generatedTokens: 0, isComputed: true },
    ]);
    expect(balancer.share(10).cache).toEqual([]);
  });

  it("names no more than twenty thousand that were sent, and the ends of those alone", () => {
    const balancer = randomly("a");
    balancer.share(0);
    const leases = times(20_100, (i) => routedNow(balancer, chat, i).lease);
    const { cache } = balancer.share(30_000);
    expect([cache.length, cache.at(-1)]).toMatchObject([20_000, { kind: "sent", request: 20_000 }]);
    for (const lease of leases) balancer.finish(lease, { kind: "aborted" }, 40_000);
    const ends = balancer.share(50_000).cache;
    expect([ends.length, ends.at(-1)]).toMatchObject([20_000, { kind: "ended", request: 20_000 }]);
  });

  it("says the same after it went as JSON", () => {
    const [here, there, other] = [balancerOf("a"), balancerOf("a"), balancerOf("a")];
    other.share(0);
    const lease = times(2, () => routedNow(other, cached, 0).lease)[0] as Lease;
    routedNow(other, chat, 0);
    other.firstToken(lease, 10);
    const message = other.share(20);
    here.adopt("other", message, 30);
    there.adopt("other", JSON.parse(JSON.stringify(message)), 30);
    expect(stateOf(there)).toEqual(stateOf(here));
    expect(memberOf(there).cachedTokens(cached)).toBe(256);
  });
});

describe("what another balancer told", () => {
  it("counts like work of one's own, in place of what it told before", () => {
    const [one, other] = [balancerOf("a", "b"), balancerOf("a", "b", "c")];
    const leases = times(6, () => routedNow(other, chat, 0).lease).filter(({ endpointId }) => endpointId === "a");
    one.adopt("other", other.share(0), 100);
    expect(memberOf(one).account).toMatchObject({ requests: 2, waitingRequests: 2, waitingPrefillTokens: 2000 });
    expect(memberOf(one).account).toMatchObject({ othersPrefillTokens: 2000, othersPrefillPairs: 1_000_000 });
    expect(memberOf(one).account.prefillSinceMs).toBe(100);
    for (const lease of leases) other.firstToken(lease, 200);
    one.adopt("other", other.share(200), 200);
    expect(memberOf(one).account).toMatchObject({ requests: 2, waitingRequests: 0, runningRequests: 2 });
    expect(memberOf(one).account).toMatchObject({ contextTokens: 2002, othersPrefillTokens: 0, othersPrefillPairs: 0 });
    one.adopt("other", undefined, 300);
    expect(memberOf(one).account).toMatchObject({ requests: 0, runningRequests: 0, contextTokens: 0, outputTokens: 0 });
    expect(memberOf(one).account.recentPrefillMs(PRIOR_COEFFICIENTS, 300)).toBeCloseTo(0, 8);
  });

  it("counts as prefill that was done beside one's own answers", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    one.adopt("other", other.share(0), 0);
    other.firstToken(routedNow(other, cached, 1).lease, 10);
    one.adopt("other", other.share(20), 20);
    expect(memberOf(one).observer.decoding(20)).toMatchObject({ doneTokens: 300, donePairs: 45_000, doneSteps: 1 });
    expect(one.share(30).endpoints.a?.done).toEqual({ tokens: 0, pairs: 0, steps: 0 });
  });

  it("moves requests away from where it is busy", () => {
    const [one, other] = [balancerOf("a", "b"), balancerOf("a")];
    times(4, () => routedNow(other, chat, 0));
    one.adopt("other", other.share(0), 0);
    const chosen = times(4, () => routedNow(one, chat, 0).endpoint.id);
    expect(chosen).toEqual(["b", "b", "b", "b"]);
  });

  it("is as old as it says, whenever it is heard", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    routedNow(other, chat, 1000);
    one.adopt("other", other.share(1060), 2100);
    expect(memberOf(one).account.prefillSinceMs).toBe(2040);
    one.adopt("other", other.share(1260), 2250);
    expect(memberOf(one).account.prefillSinceMs).toBe(2040);
  });

  it("gives way to one's own requests as time passes, though its end is not seen", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    times(4, () => routedNow(other, chat, 0));
    one.adopt("other", other.share(0), 0);
    expect(one.decide(chat, 1).kind).toBe("held");
    // The wait of the others is over by then; the one that is held goes before a newcomer.
    expect(one.tick(200)).toMatchObject([{ decision: { kind: "routed", endpoint: { id: "a" } } }]);
    expect(one.decide(chat, 200).kind).toBe("routed");
  });

  it("holds a place in the lines, and its shared blocks are counted once", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    other.share(0);
    times(2, () => routedNow(other, cached, 0));
    routedNow(other, requestProfile({ promptTokens: 4000 }), 0);
    other.decide(chat, 0);
    one.adopt("other", other.share(0), 0);
    expect(memberOf(one).held.requests).toBe(1);
    // What it has in flight, half of each last block, less the start that two have in common.
    expect(memberOf(one).kvTokens).toBe(300 + 300 + 4000 + 3 * 8 - 256);
    routedNow(one, cached, 0);
    expect(memberOf(one).kvTokens).toBe(3 * 300 + 4000 + 4 * 8 - 2 * 256);
    one.adopt("other", undefined, 0);
    expect([memberOf(one).held.requests, memberOf(one).kvTokens]).toEqual([0, 308]);
  });

  it("makes its prompts known as cached where they went", () => {
    const [one, other] = [balancerOf("a", "b"), balancerOf("b")];
    other.share(0);
    routedNow(other, cached, 0);
    one.adopt("other", other.share(10), 10);
    expect([memberOf(one, "a").cachedTokens(cached), memberOf(one, "b").cachedTokens(cached)]).toEqual([0, 256]);
    expect(mustBeRouted(one.decide(cached, 20_000)).lease.cost.promptTokens).toBe(300);
  });

  it("of an endpoint that left does not come back with it", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    routedNow(other, chat, 0);
    one.adopt("other", other.share(0), 0);
    one.setEndpoints([], 1);
    one.setEndpoints([endpoint({ id: "a" })], 2);
    expect(memberOf(one).account.requests).toBe(0);
  });

  it("releases whom the end of its work lets go", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    routedNow(other, requestProfile({ promptTokens: 8000 }), 0);
    one.adopt("other", other.share(0), 0);
    const decision = one.decide(requestProfile({ promptTokens: 8000 }), 0);
    expect(decision.kind).toBe("held");
    expect(one.adopt("other", undefined, 50)).toMatchObject([{ decision: { kind: "routed", endpoint: { id: "a" } } }]);
  });

  it("releases a request once there was time for the prefill it told of, without another word", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    const long = requestProfile({ promptTokens: 8000 });
    routedNow(other, long, 0);
    one.adopt("other", other.share(0), 0);
    expect(one.decide(long, 0).kind).toBe("held");
    const wakeMs = one.nextWakeMs(0) ?? Number.NaN;
    expect(wakeMs).toBeCloseTo(memberOf(one).speed.prefillMs(8000, 8000 ** 2 / 2), 6);
    expect(one.tick(wakeMs - 1)).toEqual([]);
    expect(one.tick(wakeMs)).toMatchObject([{ decision: { kind: "routed" } }]);
  });
});
