import { describe, expect, it, onTestFinished } from "vitest";
import { REFUSING_URL } from "../../test/support/fake-upstream.ts";
import { testConfig, testEndpoint, testPool } from "../../test/support/test-config.ts";
import { type Lease, requestProfile, seededRandom } from "../core/index.ts";
import { monotonicClock } from "./clock.ts";
import { createLog } from "./log.ts";
import { systemResolver } from "./resolver.ts";
import { ServedPool } from "./served-pool.ts";

const { health } = testConfig([]);
const REQUEST = requestProfile({ promptTokens: 10 });
const E1 = testEndpoint("e1", REFUSING_URL);
const E2 = testEndpoint("e2", `${REFUSING_URL}/2`);

/** A pool of `e1` and `e2` that runs and probes once in a long while. */
function run(): { pool: ServedPool; changes: () => number; send(tried: string): Lease; end(lease: Lease): void } {
  let changes = 0;
  const pool = new ServedPool(testPool([], { endpoints: [E1, E2] }), {
    clock: monotonicClock,
    random: seededRandom(1),
    log: createLog({ level: "silent", format: "json" }),
    resolver: systemResolver,
    health: { ...health, intervalMs: 60_000 },
    endpointsChanged: () => changes++,
    modelsChanged: () => {},
  });
  pool.start();
  onTestFinished(() => pool.close());
  return {
    pool,
    changes: () => changes,
    send: (tried) => {
      const decision = pool.balancer.decide(REQUEST, monotonicClock.nowMs(), [tried], {
        bodyBytes: 0,
        released: () => {},
      });
      if (decision.kind !== "routed") throw new Error(decision.kind);
      return decision.lease;
    },
    end: (lease) => pool.balancer.finish(lease, { kind: "completed" }, monotonicClock.nowMs()),
  };
}

function availabilityOf(pool: ServedPool, id: string): string | undefined {
  return pool.balancer.members.find(({ endpoint }) => endpoint.id === id)?.availability;
}

describe("an endpoint that left with work", () => {
  it("is found until the work is done and somebody looked", () => {
    const { pool, changes, send, end } = run();
    const lease = send("e2");
    pool.removeEndpoint("e1");
    expect(pool.find("e1")).toEqual(E1);
    expect(pool.leaving).toMatchObject([{ account: { requests: 1 } }]);
    pool.sweep();
    expect(pool.leaving).toHaveLength(1);
    end(lease);
    const before = changes();
    pool.sweep();
    expect(pool.leaving).toHaveLength(0);
    expect(pool.find("e1")).toBeUndefined();
    expect(changes()).toBe(before + 1);
    pool.sweep();
    expect(changes()).toBe(before + 1);
  });

  it("says nothing of itself meanwhile, and comes back as what it was found to be", () => {
    const { pool, send } = run();
    const lease = send("e2");
    const monitor = pool.monitor("e1");
    pool.removeEndpoint("e1");
    for (let i = 0; i < 3; i++) monitor.connectFailed(lease, "ECONNREFUSED");
    pool.putEndpoint(E1);
    expect(pool.monitor("e1")).toBe(monitor);
    expect(availabilityOf(pool, "e1")).toBe("down");
  });

  it("is a new one when it comes back after its work, though nobody looked", () => {
    const { pool, send, end } = run();
    const lease = send("e2");
    const monitor = pool.monitor("e1");
    pool.removeEndpoint("e1");
    end(lease);
    pool.putEndpoint(E1);
    expect(pool.monitor("e1")).not.toBe(monitor);
    expect(availabilityOf(pool, "e1")).toBe("unknown");
  });

  it("is not the one that has its id by now", () => {
    const { pool, send } = run();
    const lease = send("e2");
    const old = pool.monitor("e1");
    pool.putEndpoint({ ...E1, url: `${REFUSING_URL}/elsewhere` });
    for (let i = 0; i < 3; i++) old.connectFailed(lease, "ECONNREFUSED");
    expect(pool.monitor("e1")).not.toBe(old);
    expect(availabilityOf(pool, "e1")).toBe("unknown");
    expect(pool.leaving).toHaveLength(0);
  });

  it("leaves nothing behind when it was idle", () => {
    const { pool } = run();
    pool.removeEndpoint("e1");
    expect(pool.leaving).toHaveLength(0);
    expect(() => pool.monitor("e1")).toThrow(RangeError);
  });
});

describe("a pool", () => {
  it("is ready by endpoints that requests may go to, and by no others", () => {
    const { pool } = run();
    const nowMs = monotonicClock.nowMs();
    pool.balancer.observe({ kind: "availability", endpointId: "e1", availability: "ready" }, nowMs);
    expect(pool.isReady).toBe(true);
    pool.drainEndpoint("e1", true);
    expect(pool.isReady).toBe(false);
    pool.drainEndpoint("e1", false);
    pool.weighEndpoint("e1", 0);
    expect(pool.isReady).toBe(false);
  });

  it("is idle when nothing runs at any of its endpoints, those that left included", () => {
    const { pool, send, end } = run();
    const lease = send("e2");
    expect(pool.isIdle).toBe(false);
    pool.removeEndpoint("e1");
    expect(pool.isIdle).toBe(false);
    end(lease);
    expect(pool.isIdle).toBe(true);
  });
});
