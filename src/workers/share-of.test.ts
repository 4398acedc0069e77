import { describe, expect, it } from "vitest";
import { testConfig, testPool } from "../../test/support/test-config.ts";
import { shareOf } from "./share-of.ts";

const MIB = 2 ** 20;

describe("shareOf", () => {
  const holding = { maxRequests: 5, maxBytes: 256 * MIB, maxWaitMs: 1_000, promoteAfterMs: 100 };
  const config = testConfig([], {
    workers: 4,
    pools: [testPool(["http://a"], { holding })],
    limits: { connections: 10, bufferedBytes: 1024 * MIB, bodyBytes: 64 * MIB },
    failover: { minRetriesPerSecond: 2 },
  });

  it("divides what protects memory, and leaves the admin listener to the primary", () => {
    const share = shareOf(config);
    expect(share.limits).toMatchObject({ connections: 3, bufferedBytes: 256 * MIB, bodyBytes: 64 * MIB });
    expect(share.pools[0]?.holding).toEqual({ ...holding, maxRequests: 2, maxBytes: 64 * MIB });
    expect(share.failover).toEqual({ ...config.failover, minRetriesPerSecond: 0.5 });
    expect(share.admin).toBeUndefined();
    const same = { limits: config.limits, pools: config.pools, failover: config.failover, admin: config.admin };
    expect({ ...share, ...same }).toEqual(config);
  });

  it("leaves room for one body that is allowed, however many there are", () => {
    const share = shareOf({ ...config, workers: 64 });
    expect(share.limits.bufferedBytes).toBe(64 * MIB);
    expect(share.pools[0]?.holding.maxBytes).toBe(64 * MIB);
  });

  it("never gives more than all may have together, and nothing where nothing is allowed", () => {
    const pools = [testPool(["http://a"], { holding: { ...holding, maxRequests: 0, maxBytes: 1 * MIB } })];
    const share = shareOf({ ...config, pools, limits: { ...config.limits, bufferedBytes: 8 * MIB } });
    expect(share.limits.bufferedBytes).toBe(8 * MIB);
    expect(share.pools[0]?.holding).toMatchObject({ maxRequests: 0, maxBytes: 1 * MIB });
  });

  it("leaves each a retry in ten seconds, where there are to be any", () => {
    const floorOf = (minRetriesPerSecond: number): number =>
      shareOf({ ...config, workers: 32, failover: { ...config.failover, minRetriesPerSecond } }).failover
        .minRetriesPerSecond;
    expect([0, 0.05, 1, 32].map(floorOf)).toEqual([0, 0.05, 0.1, 1]);
  });
});
