import { describe, expect, it } from "vitest";
import { mustBeRouted } from "../../test/support/decisions.ts";
import { requestOf } from "../../test/support/desk.ts";
import { TestOrder, TestTenant } from "../../test/support/test-order.ts";
import { Balancer } from "./balancer.ts";
import type { Outcome } from "./decision.ts";
import { endpoint } from "./endpoint.ts";

/** A tenant that adds up what it is charged. */
class ChargedTenant extends TestTenant {
  readonly events: string[] = [];
  promptTokens = 0;
  outputTokens = 0;

  override arrived(): void {
    this.events.push("arrived");
  }
  override held(): void {
    this.events.push("held");
  }
  override left(): void {
    this.events.push("left");
  }
  override charge(promptTokens: number, outputTokens: number): void {
    this.promptTokens += promptTokens;
    this.outputTokens += outputTokens;
  }
}

function start() {
  const tenant = new ChargedTenant();
  const order = Object.assign(new TestOrder(), { tenantOf: () => tenant });
  const balancer = new Balancer({
    policy: "least_connections",
    endpoints: [endpoint({ id: "a", maxRequests: 1 })],
    order,
    whenFull: "hold",
  });
  const send = (request = requestOf(500)) => mustBeRouted(balancer.decide(request, 0)).lease;
  const charged = (): readonly number[] => [tenant.promptTokens, tenant.outputTokens];
  return { tenant, balancer, send, charged };
}

describe("a tenant", () => {
  it("is charged its prompt when that is sent, and its answer as it comes", () => {
    const { balancer, send, charged } = start();
    const lease = send();
    expect(charged()).toEqual([500, 0]);
    balancer.firstToken(lease, 10);
    balancer.progress(lease, 7, 20);
    expect(charged()).toEqual([500, 8]);
  });

  const ends: readonly [string, Outcome, boolean, readonly number[]][] = [
    ["what the engine counted", { kind: "completed", promptTokens: 450, outputTokens: 20 }, true, [450, 20]],
    ["what was seen, where the engine does not count", { kind: "completed" }, true, [500, 8]],
    ["what was seen of an answer that its client left", { kind: "aborted" }, true, [500, 8]],
    ["its prompt, though its client left before the answer", { kind: "aborted" }, false, [500, 0]],
    ["what was seen of an answer that broke off", { kind: "failed" }, true, [500, 8]],
    ["nothing of what was lost unanswered", { kind: "failed" }, false, [0, 0]],
  ];

  it.each(ends)("is charged in the end for %s", (_, outcome, isAnswered, expected) => {
    const { balancer, send, charged } = start();
    const lease = send();
    if (isAnswered) {
      balancer.firstToken(lease, 10);
      balancer.progress(lease, 7, 20);
    }
    for (const _ of "12") balancer.finish(lease, outcome, 30);
    expect(charged()).toEqual(expected);
  });

  it("is charged by projection for an answer that is not seen, and in the end for what it was", () => {
    const { balancer, send, charged } = start();
    const [lost, whole] = [{ kind: "failed" }, { kind: "completed", outputTokens: 60 }] as const;
    for (const [outcome, expected] of [[lost, [0, 0]] as const, [whole, [500, 60]] as const]) {
      const lease = send(requestOf(500, { isStreaming: false }));
      balancer.tick(1000);
      expect(charged()[1]).toBeGreaterThan(5);
      balancer.finish(lease, outcome, 1000);
      expect(charged()).toEqual(expected);
    }
  });

  it("is told what comes of its own, is held, and is not any more; a question changes nothing", () => {
    const { tenant, balancer, send } = start();
    const lease = send();
    balancer.explain(requestOf(1), 0);
    balancer.decide(requestOf(1), 0);
    balancer.finish(lease, { kind: "completed" }, 10);
    expect(tenant.events).toEqual(["arrived", "arrived", "held", "left"]);
  });
});
