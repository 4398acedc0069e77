import { DEFAULT_EJECTION_OPTIONS } from "../../src/core/index.ts";
import type { Config } from "../../src/runtime/index.ts";

type Pool = Config["pools"][number];

/** What a test sets differently; of the sections named here, single values. */
export interface TestOverrides extends Partial<Omit<Config, "timeouts" | "limits" | "health" | "failover">> {
  readonly timeouts?: Partial<Config["timeouts"]>;
  readonly limits?: Partial<Config["limits"]>;
  readonly health?: Partial<Config["health"]>;
  readonly failover?: Partial<Config["failover"]>;
  /** Of the one pool there is unless `pools` says otherwise. */
  readonly pool?: Partial<Pool>;
}

const LIMITS = { bufferedBytes: 1024 * 1024 * 1024, connections: 10_000 };

/** A gateway on free loopback ports in front of `urls`, probing fast and logging nothing. */
export function testConfig(urls: readonly string[], overrides: TestOverrides = {}): Config {
  const { timeouts, limits, health, failover, pool, ...others } = overrides;
  return {
    listen: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    admin: { host: "127.0.0.1", port: 0 },
    workers: 1,
    adminKeys: [],
    keys: [],
    tenantKey: [],
    log: { level: "silent", format: "json" },
    sessionKey: undefined,
    pools: [testPool(urls, pool)],
    passthrough: [],
    limits: { bodyBytes: 64 * 1024 * 1024, headerBytes: 32 * 1024, ...LIMITS, ...limits },
    timeouts: {
      connectMs: 1_000,
      firstByteMs: 30_000,
      idleMs: 10_000,
      keepAliveMs: 75_000,
      upstreamKeepAliveMs: 3_000,
      drainMs: 200,
      totalMs: undefined,
      clientHeadMs: 60_000,
      clientBodyMs: 300_000,
      ...timeouts,
    },
    health: {
      intervalMs: 200,
      timeoutMs: 500,
      unhealthyAfter: 3,
      healthyAfter: 1,
      path: undefined,
      ejection: DEFAULT_EJECTION_OPTIONS,
      slowStartMs: undefined,
      ...health,
    },
    failover: {
      attempts: 3,
      resends: 1,
      slowResends: 0,
      budgetRatio: 0.2,
      minRetriesPerSecond: 10,
      guardMs: 1_000,
      ...failover,
    },
    hedging: undefined,
    streams: { heartbeatMs: undefined, opensEarly: false },
    recording: undefined,
    ...others,
  };
}

/** A pool whose endpoints are called `e1`, `e2` and so on, in the order of `urls`. */
export function testPool(urls: readonly string[], overrides: Partial<Pool> = {}): Pool {
  const endpoints = urls.map((url, i) => testEndpoint(`e${i + 1}`, url));
  return {
    name: "default",
    models: undefined,
    aliases: new Map(),
    policy: { name: "round_robin", options: {} },
    holding: { maxRequests: 4096, maxBytes: 256 * 1024 * 1024, maxWaitMs: 120_000, promoteAfterMs: 10_000 },
    endpoints,
    discovery: [],
    ...overrides,
  };
}

/** An endpoint of which only its address is configured. */
export function testEndpoint(
  id: string,
  url: string,
  overrides: Partial<Pool["endpoints"][number]> = {},
): Pool["endpoints"][number] {
  return {
    id,
    url,
    weight: 1,
    tokensPerSecond: undefined,
    kvCapacityTokens: undefined,
    engine: "auto",
    apiKey: undefined,
    models: undefined,
    maxRequests: undefined,
    tls: undefined,
    ...overrides,
  };
}
