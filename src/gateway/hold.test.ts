import { describe, expect, it } from "vitest";
import { oneAtATime } from "../../test/support/one-at-a-time.ts";
import { Balancer, endpoint, type Lease, requestProfile } from "../core/index.ts";
import { LiveBalancer } from "../runtime/index.ts";
import { Hold } from "./hold.ts";

/** A request that is held behind another one, and that other one's lease. */
function start(): { readonly balancer: LiveBalancer; readonly hold: Hold; readonly ahead: Lease } {
  const core = new Balancer({ policy: oneAtATime(), endpoints: [endpoint({ id: "e1" })] });
  const clock = { nowMs: (): number => 500 };
  const balancer = new LiveBalancer(core, clock);
  const request = requestProfile({ promptTokens: 10 });
  const holder = { bodyBytes: 0, released: (decision: Parameters<Hold["release"]>[0]): void => hold.release(decision) };
  const [first, second] = [balancer.decide(request, 0, [], holder), balancer.decide(request, 100, [], holder)];
  if (first.kind !== "routed" || second.kind !== "held") throw new Error(`${first.kind}, ${second.kind}`);
  const hold = new Hold(balancer, second.ticket, clock);
  return { balancer, hold, ahead: first.lease };
}

describe("a hold", () => {
  it("ends with what was decided", async () => {
    const { balancer, hold, ahead } = start();
    expect(hold.decision).toBeUndefined();
    balancer.finish(ahead, { kind: "completed" }, 500);
    await hold.ended;
    expect(hold.decision).toMatchObject({ kind: "routed", lease: { isOpen: true } });
    expect(hold.elapsedMs).toBe(400);
  });

  it("ends without a decision when the client leaves, and the request is held no more", async () => {
    const { balancer, hold } = start();
    hold.leave();
    await hold.ended;
    expect(hold.decision).toBeUndefined();
    expect(balancer.heldRequests).toBe(0);
  });

  it("gives the endpoint back when the client leaves in the moment of the release", async () => {
    const { balancer, hold, ahead } = start();
    balancer.finish(ahead, { kind: "completed" }, 500);
    hold.leave();
    await hold.ended;
    expect(hold.decision).toBeUndefined();
    expect(balancer.members[0]?.account.requests).toBe(0);
  });
});
