import { describe, expect, it } from "vitest";
import { routedNow } from "../../test/support/decisions.ts";
import { Script } from "../../test/support/scripted-policy.ts";
import { Balancer, type BalancerOptions } from "./balancer.ts";
import type { Release } from "./decision.ts";
import { endpoint } from "./endpoint.ts";
import { type RequestProfile, requestProfile } from "./request.ts";
import type { Ticket } from "./ticket.ts";

const requestOf = (promptTokens: number): RequestProfile => requestProfile({ promptTokens });

/** Endpoints `a` and `b` with one request in flight each; the policy prefers `a`. */
function busy({ isBounded = false, ...options }: Partial<BalancerOptions> & { readonly isBounded?: boolean } = {}) {
  const script = new Script();
  script.scores.b = 9;
  const policy = script.policy({ isBounded, isLate: !isBounded });
  const balancer = new Balancer({ policy, endpoints: ["a", "b"].map((id) => endpoint({ id })), ...options });
  for (const other of ["a", "b"]) routedNow(balancer, requestOf(1), 0, [other]);
  const hold = (promptTokens: number, bodyBytes = 0): Ticket => {
    const decision = balancer.decide(requestOf(promptTokens), 0, [], bodyBytes);
    if (decision.kind !== "held") throw new Error(decision.kind);
    return decision.ticket;
  };
  return { script, balancer, hold };
}

const ticketsOf = (releases: readonly Release[]): readonly Ticket[] => releases.map(({ ticket }) => ticket);

describe("a held request whose client leaves", () => {
  it("lets those behind it go that had to wait for it alone", () => {
    const { script, balancer, hold } = busy();
    const [first, second, third] = [hold(100), hold(200), hold(300)];
    script.ready.add("a");
    expect(balancer.leave(second, 0)).toEqual([]);
    expect(ticketsOf(balancer.leave(first, 0))).toEqual([third]);
    expect(balancer.heldRequests).toBe(0);
  });

  it("lets the next of the pool's line go", () => {
    const { script, balancer, hold } = busy({ isBounded: true, whenFull: "hold" });
    script.full.add("a").add("b");
    const [first, next] = [hold(100), hold(200)];
    script.full.delete("b");
    expect(balancer.leave(first, 0)).toMatchObject([{ ticket: next, decision: { endpoint: { id: "b" } } }]);
  });

  it("changes nothing once it is released", () => {
    const { balancer, hold } = busy();
    const [gone, staying] = [hold(100), hold(200)];
    expect(ticketsOf(balancer.observe({ kind: "draining", endpointId: "a", isDraining: true }, 0))).toEqual([]);
    expect([balancer.leave(gone, 0), balancer.leave(gone, 0)]).toEqual([[], []]);
    expect(balancer.heldRequests).toBe(1);
    expect(balancer.leave(staying, 0)).toEqual([]);
  });
});

describe("the bytes of held requests", () => {
  it("are bounded together: what does not fit is refused", () => {
    const { balancer, hold } = busy({ holding: { maxBytes: 1000 } });
    const first = hold(100, 600);
    hold(100, 400);
    expect(balancer.decide(requestOf(100), 0, [], 1)).toMatchObject({ kind: "refused", reason: "queue_full" });
    balancer.leave(first, 0);
    expect(balancer.decide(requestOf(100), 0, [], 601)).toMatchObject({ kind: "refused", reason: "queue_full" });
    hold(100, 600);
  });

  it("count once for a request that moves from line to line", () => {
    const { balancer, hold } = busy({ holding: { maxBytes: 1000 } });
    const ticket = hold(100, 1000);
    balancer.observe({ kind: "draining", endpointId: "a", isDraining: true }, 0);
    expect(ticket.place?.endpointId).toBe("b");
    balancer.leave(ticket, 0);
    hold(100, 1000);
  });
});

describe("explain of a busy pool", () => {
  it("says that the request would be held, and for which endpoint", () => {
    const { script, balancer } = busy();
    expect(balancer.explain(requestOf(100), 0)).toMatchObject({ chosen: { id: "a" }, wouldHold: true });
    expect(balancer.heldRequests).toBe(0);
    script.ready.add("a");
    expect(balancer.explain(requestOf(100), 0)).toMatchObject({ chosen: { id: "a" }, wouldHold: false });
  });

  it("says that it would go nowhere where no more may be held, and sends it at once where nobody is", () => {
    const { balancer } = busy({ holding: { maxBytes: 1000 } });
    expect(balancer.explain(requestOf(100), 0, 1000)).toMatchObject({ chosen: { id: "a" }, wouldHold: true });
    expect(balancer.explain(requestOf(100), 0, 1001)).toMatchObject({ chosen: undefined, wouldHold: false });
    const { balancer: eager } = busy({ holding: { maxRequests: 0 } });
    expect(eager.explain(requestOf(100), 0, 1001)).toMatchObject({ chosen: { id: "a" }, wouldHold: false });
  });

  it("says that it would wait for whoever has room first", () => {
    const { script, balancer } = busy({ isBounded: true, whenFull: "hold" });
    script.full.add("a").add("b");
    expect(balancer.explain(requestOf(100), 0)).toMatchObject({ chosen: undefined, wouldHold: true });
  });
});
