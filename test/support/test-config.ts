import type { Config } from "../../src/runtime/index.ts";

type Pool = Config["pools"][number];

/** What a test sets differently; of the sections named here, single values. */
export interface TestOverrides extends Partial<Omit<Config, "timeouts" | "limits" | "health">> {
  readonly timeouts?: Partial<Config["timeouts"]>;
  readonly limits?: Partial<Config["limits"]>;
  readonly health?: Partial<Config["health"]>;
  /** Of the one pool there is unless `pools` says otherwise. */
  readonly pool?: Partial<Pool>;
}

/** A gateway on free loopback ports in front of `urls`, probing fast and logging nothing. */
export function testConfig(urls: readonly string[], overrides: TestOverrides = {}): Config {
  const { timeouts, limits, health, pool, ...others } = overrides;
  return {
    listen: { host: "127.0.0.1", port: 0 },
    admin: { host: "127.0.0.1", port: 0 },
    log: { level: "silent", format: "json" },
    sessionKey: undefined,
    pools: [testPool(urls, pool)],
    passthrough: [],
    limits: { bodyBytes: 64 * 1024 * 1024, headerBytes: 32 * 1024, ...limits },
    timeouts: {
      connectMs: 1_000,
      firstByteMs: 30_000,
      idleMs: 10_000,
      keepAliveMs: 75_000,
      upstreamKeepAliveMs: 3_000,
      drainMs: 200,
      ...timeouts,
    },
    health: { intervalMs: 200, timeoutMs: 500, unhealthyAfter: 3, healthyAfter: 1, path: undefined, ...health },
    attempts: 3,
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
    holding: { maxRequests: 4096, maxBytes: 256 * 1024 * 1024, maxWaitMs: 120_000 },
    endpoints,
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
    ...overrides,
  };
}
