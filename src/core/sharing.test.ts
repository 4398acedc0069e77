import { describe, expect, it } from "vitest";
import { mustBeRouted, routedNow } from "../../test/support/decisions.ts";
import { times } from "../../test/support/fleet.ts";
import { RECENT_PREFILL_MS } from "./account.ts";
import { Balancer } from "./balancer.ts";
import { endpoint } from "./endpoint.ts";
import type { Member } from "./pool.ts";
import { requestProfile } from "./request.ts";

const chat = requestProfile({ promptTokens: 1000, expectedOutputTokens: 100 });
const prefix = { hashes: [1, 2, 3, 4], tokensPerBlock: 64 };
const cached = requestProfile({ promptTokens: 300, expectedOutputTokens: 10, prefix });

function balancerOf(...ids: readonly string[]): Balancer {
  return new Balancer({ endpoints: ids.map((id) => endpoint({ id })) });
}

function memberOf(balancer: Balancer, id = "a"): Member {
  const found = balancer.members.find((member) => member.endpoint.id === id);
  if (found === undefined) throw new RangeError(id);
  return found;
}

describe("what a balancer tells the others", () => {
  it("is what it has in flight at each endpoint, holds for it, and counts more than once", () => {
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
        sharedTokens: 256,
      },
    });
  });

  it("leaves out what others told it", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    times(3, () => routedNow(other, chat, 0));
    const before = one.share(0);
    one.adopt("other", other.share(0), 0);
    expect(one.share(0)).toEqual(before);
    routedNow(one, chat, 0);
    expect(one.share(5000).endpoints).toMatchObject({ a: { account: { requests: 1, waitingPrefillTokens: 1000 } } });
    const { recentPrefillTokens } = one.share(5000).endpoints.a?.account ?? {};
    expect(recentPrefillTokens).toBeCloseTo(1000 * Math.exp(-5000 / RECENT_PREFILL_MS), 6);
  });

  it("names the prompts that were sent since it was last asked, from the first time on", () => {
    const balancer = balancerOf("a");
    routedNow(balancer, cached, 0);
    expect(balancer.share(0).sent).toEqual([]);
    routedNow(balancer, cached, 1);
    routedNow(balancer, chat, 1);
    expect(balancer.share(2).sent).toEqual([{ endpointId: "a", prefix, promptTokens: 300 }]);
    expect(balancer.share(3).sent).toEqual([]);
  });

  it("names ten thousand prompts at most", () => {
    const balancer = new Balancer({ endpoints: [endpoint({ id: "a" })], policy: "random" });
    balancer.share(0);
    for (let i = 0; i < 10_100; i++) balancer.finish(routedNow(balancer, cached, i).lease, { kind: "aborted" }, i);
    expect(balancer.share(20_000).sent).toHaveLength(10_000);
  });
});

describe("what another balancer told", () => {
  it("counts like work of one's own, in place of what it told before", () => {
    const [one, other] = [balancerOf("a", "b"), balancerOf("a", "b", "c")];
    const leases = times(6, () => routedNow(other, chat, 0).lease).filter(({ endpointId }) => endpointId === "a");
    one.adopt("other", other.share(0), 100);
    expect(memberOf(one).account).toMatchObject({ requests: 2, waitingRequests: 2, waitingPrefillTokens: 2000 });
    expect(memberOf(one).account.prefillSinceMs).toBe(100);
    for (const lease of leases) other.firstToken(lease, 200);
    one.adopt("other", other.share(200), 200);
    expect(memberOf(one).account).toMatchObject({ requests: 2, waitingRequests: 0, runningRequests: 2 });
    expect(memberOf(one).account.contextTokens).toBe(2002);
    one.adopt("other", undefined, 300);
    expect(memberOf(one).account).toMatchObject({ requests: 0, runningRequests: 0, contextTokens: 0, outputTokens: 0 });
    expect(memberOf(one).account.recentPrefillTokens(300)).toBeCloseTo(0, 6);
  });

  it("moves requests away from where it is busy", () => {
    const [one, other] = [balancerOf("a", "b"), balancerOf("a")];
    times(4, () => routedNow(other, chat, 0));
    one.adopt("other", other.share(0), 0);
    const chosen = times(4, () => routedNow(one, chat, 0).endpoint.id);
    expect(chosen).toEqual(["b", "b", "b", "b"]);
  });

  it("holds a place in the lines, and its shared blocks are counted once", () => {
    const [one, other] = [balancerOf("a"), balancerOf("a")];
    times(2, () => routedNow(other, cached, 0));
    routedNow(other, requestProfile({ promptTokens: 4000 }), 0);
    other.decide(chat, 0);
    one.adopt("other", other.share(0), 0);
    expect(memberOf(one).held.requests).toBe(1);
    // What it has in flight, half of each last block, less the start that two have in common.
    expect(memberOf(one).kvTokens).toBe(300 + 300 + 4000 + 3 * 8 - 256);
    one.adopt("other", undefined, 0);
    expect([memberOf(one).held.requests, memberOf(one).kvTokens]).toEqual([0, 0]);
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
});
