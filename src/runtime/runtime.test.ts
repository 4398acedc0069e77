import { describe, expect, it, onTestFinished } from "vitest";
import { REFUSING_URL } from "../../test/support/fake-upstream.ts";
import { testConfig, testEndpoint, testPool } from "../../test/support/test-config.ts";
import { requestProfile } from "../core/index.ts";
import type { TicketHolder } from "./live-balancer.ts";
import { Runtime } from "./runtime.ts";

const HOLDER: TicketHolder = { bodyBytes: 0, released: () => {} };

describe("a pool that a reload removed", () => {
  it("is told how its endpoints are as long as it has requests, since whom it holds still goes there", () => {
    const endpoints = ["e1", "e2"].map((id) => testEndpoint(id, `${REFUSING_URL}/${id}`));
    const config = testConfig([], { pool: { endpoints }, health: { intervalMs: 60_000 } });
    const runtime = new Runtime(config);
    runtime.start();
    onTestFinished(() => runtime.close());
    const [pool] = runtime.pools;
    if (pool === undefined) throw new Error("there is no pool");
    const decision = pool.balancer.decide(requestProfile({ promptTokens: 10 }), runtime.clock.nowMs(), ["e2"], HOLDER);
    if (decision.kind !== "routed") throw new Error(decision.kind);
    runtime.reconfigure({ ...config, pools: [{ ...testPool([]), name: "other", endpoints }] });
    expect(runtime.leavingPools).toEqual([pool]);
    for (let i = 0; i < 3; i++) pool.monitor("e1").connectFailed(decision.lease, "ECONNREFUSED");
    expect(pool.balancer.members.map(({ availability }) => availability)[0]).toBe("down");
  });
});
