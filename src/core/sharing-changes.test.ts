import { describe, expect, it } from "vitest";
import { routedNow } from "../../test/support/decisions.ts";
import { reportBatches } from "../../test/support/engine-signals.ts";
import { times } from "../../test/support/fleet.ts";
import { Balancer } from "./balancer.ts";
import type { Routed } from "./decision.ts";
import { endpoint } from "./endpoint.ts";
import type { Lease } from "./ledger.ts";
import type { Member } from "./member.ts";
import { requestProfile } from "./request.ts";
import type { EndpointShare } from "./shared-work.ts";

const chat = requestProfile({ promptTokens: 1000, expectedOutputTokens: 100 });
const long = requestProfile({ promptTokens: 8000, expectedOutputTokens: 100 });

function balancerOf(...ids: readonly string[]): Balancer {
  const balancer = new Balancer({ endpoints: ids.map((id) => endpoint({ id })) });
  reportBatches(balancer);
  return balancer;
}

function memberOf(balancer: Balancer, id = "a"): Member {
  return balancer.member(id) as Member;
}

/** Ids of the endpoints that it has news of; undefined: it has none. */
function newsOf(balancer: Balancer, nowMs = 0): readonly string[] | undefined {
  const work = balancer.shareChanges(nowMs);
  return work && Object.keys(work.endpoints);
}

/** Sends one request, to whichever of its endpoints is best. */
function send(balancer: Balancer, nowMs = 0): Routed {
  return routedNow(balancer, chat, nowMs);
}

describe("what changed", () => {
  it("is where requests came, showed their first token or went, and where one is held", () => {
    const balancer = balancerOf("a", "b");
    balancer.share(0);
    const { lease } = send(balancer);
    const { endpointId } = lease;
    expect(newsOf(balancer)).toEqual([endpointId]);
    balancer.firstToken(lease, 10);
    expect(newsOf(balancer)).toEqual([endpointId]);
    balancer.finish(lease, { kind: "completed" }, 20);
    expect(newsOf(balancer)).toEqual([endpointId]);
    times(2, () => routedNow(balancer, long, 30));
    newsOf(balancer);
    const held = balancer.decide(long, 30);
    expect(held.kind).toBe("held");
    expect(newsOf(balancer)).toHaveLength(1);
    if (held.kind === "held") balancer.leave(held.ticket, 40);
    expect(newsOf(balancer)).toHaveLength(1);
  });

  it("is nothing where nothing did, and then no message is counted", () => {
    const balancer = balancerOf("a");
    balancer.share(0);
    expect(newsOf(balancer)).toBeUndefined();
    send(balancer);
    expect(balancer.shareChanges(1)).toMatchObject({ sequence: 2, isWhole: false, isPrompt: true });
    expect(newsOf(balancer)).toBeUndefined();
    expect(balancer.share(2)).toMatchObject({ sequence: 3, isWhole: true, isPrompt: true });
  });

  it("is no news of further tokens alone, which the next message of the endpoint tells", () => {
    const balancer = balancerOf("a");
    const { lease } = send(balancer);
    balancer.firstToken(lease, 10);
    balancer.share(10);
    balancer.progress(lease, 50, 20);
    expect(newsOf(balancer)).toBeUndefined();
    send(balancer, 30);
    expect(balancer.shareChanges(30)?.endpoints.a?.account.contextTokens).toBe(1051);
  });

  it("is not told of an endpoint that left", () => {
    const balancer = balancerOf("a", "b");
    const leases = times(2, () => send(balancer).lease);
    balancer.setEndpoints([endpoint({ id: "b" })], 1);
    for (const lease of leases) balancer.finish(lease, { kind: "completed" }, 2);
    expect(newsOf(balancer)).toEqual(["b"]);
  });
});

describe("another balancer that tells what changed", () => {
  it("leaves what it did not name as it was, and a whole message takes that away", () => {
    const [one, other] = [balancerOf("a", "b"), balancerOf("a", "b")];
    const leases = times(2, () => send(other).lease);
    one.adopt("other", other.share(0), 0);
    other.finish(leases.find(({ endpointId }) => endpointId === "a") as Lease, { kind: "completed" }, 1);
    const requests = () => ["a", "b"].map((id) => memberOf(one, id).account.requests);
    one.adopt("other", other.shareChanges(1), 1);
    expect(requests()).toEqual([0, 1]);
    one.adopt("other", { ...other.share(2), endpoints: {} }, 2);
    expect(requests()).toEqual([0, 0]);
  });

  it("may have endpoints that are not one's own, and lose some", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a", "b")];
    times(2, () => send(other));
    one.adopt("other", other.shareChanges(0), 0);
    expect(one.members.map(({ account }) => account.requests)).toEqual([1]);
    times(2, () => send(other));
    other.setEndpoints([endpoint({ id: "a" })], 1);
    expect(newsOf(other)).toEqual(["a"]);
  });

  it("may have endpoints of any name", () => {
    const names = ["constructor", "__proto__", "a"];
    const [one, other] = [balancerOf(...names), balancerOf(...names)];
    other.share(0);
    send(other);
    const named = newsOf(other) ?? [];
    one.adopt("other", { ...other.share(0), isWhole: false, endpoints: {} }, 0);
    expect(named).toHaveLength(1);
    one.adopt("other", other.share(0), 0);
    expect(one.members.map(({ account }) => account.requests)).toEqual(
      names.map((name) => (named.includes(name) ? 1 : 0)),
    );
  });

  it("is not told its own moves back, however long they talk", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    send(one, 100);
    const sinceMs = () => memberOf(one).account.prefillSinceMs;
    for (let nowMs = 110; nowMs < 1000; nowMs += 10) {
      // Each message takes 2 ms.
      const [mine, theirs] = [one.share(nowMs), other.share(nowMs)];
      one.adopt("other", theirs, nowMs + 2);
      other.adopt("one", mine, nowMs + 2);
    }
    expect(sinceMs()).toBe(100);
    expect(other.share(1000).endpoints.a?.account.prefillMovedAgoMs).toBeUndefined();
  });

  it("is believed to have done a prefill when it says so, not when there was time for it", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    other.shareChanges(0);
    const { lease } = routedNow(other, long, 0);
    one.adopt("other", other.share(0), 0);
    expect(memberOf(one).account).toMatchObject({ othersPrefillTokens: 8000, untoldPrefillTokens: 0 });
    expect(one.decide(long, 0).kind).toBe("held");
    expect(one.tick(60_000)).toEqual([]);
    other.firstToken(lease, 60_000);
    expect(one.adopt("other", other.shareChanges(60_000), 60_000)).toMatchObject([{ decision: { kind: "routed" } }]);
  });

  it("is left the endpoint as long as it holds one that goes before one's own", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    for (const balancer of [one, other]) balancer.shareChanges(0);
    const { lease } = routedNow(other, long, 0);
    one.adopt("other", other.share(0), 0);
    expect([other.decide(chat, 1).kind, one.decide(chat, 5).kind]).toEqual(["held", "held"]);
    const holding = other.share(499).endpoints.a as EndpointShare;
    expect(other.firstToken(lease, 500)).toHaveLength(1);
    const released = other.share(500);
    const { account, ...rest } = released.endpoints.a as EndpointShare;
    const idle = { ...account, waitingRequests: 0, waitingPrefillTokens: 0, waitingPrefillPairs: 0 };
    const yielding = { ...released, endpoints: { a: { ...rest, account: idle, held: holding.held } } };
    expect(one.adopt("other", yielding, 500)).toEqual([]);
    expect(one.adopt("other", released, 501)).toMatchObject([{ decision: { kind: "routed" } }]);
  });

  it("teaches how fast the endpoint is", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    const { lease } = routedNow(other, chat, 0);
    other.firstToken(lease, 100);
    for (let i = 1; i <= 40; i++) other.progress(lease, 1, 100 + 50 * i);
    expect(memberOf(one).speed.samples).toBe(0);
    const message = other.share(3000);
    expect(message.endpoints.a?.samples.length).toBeGreaterThan(1);
    one.adopt("other", message, 3000);
    expect(memberOf(one).speed.samples).toBe(memberOf(other).speed.samples);
    expect(memberOf(one).speed.decodeScale).toBeCloseTo(memberOf(other).speed.decodeScale, 6);
    expect([one, other].map((balancer) => balancer.share(3001).endpoints.a?.samples)).toEqual([[], []]);
  });

  it("names so many blocks of prompts in one message, and then as much of the next prompt as still fits", () => {
    const balancer = new Balancer({ endpoints: [endpoint({ id: "a" })], policy: "random" });
    balancer.share(0);
    const blocks = 40_000;
    for (let i = 0; i < 3; i++) {
      const prefix = { hashes: times(blocks, (block) => i * blocks + block), tokensPerBlock: 64 };
      routedNow(balancer, requestProfile({ promptTokens: 64 * blocks, prefix }), 0);
    }
    const told = balancer.share(1).cache.map((event) => (event.kind === "sent" ? event.prefix?.hashes.length : 0));
    expect(told).toEqual([blocks, 65_536 - blocks, undefined]);
  });
});
