import type { Config } from "../../src/runtime/index.ts";

/** A gateway on free loopback ports in front of `urls`, probing fast and logging nothing. */
export function testConfig(urls: readonly string[], overrides: Partial<Config> = {}): Config {
  const endpoints = urls.map((url, i) => ({
    id: `e${i + 1}`,
    url,
    weight: 1,
    tokensPerSecond: undefined,
    kvCapacityTokens: undefined,
    engine: "auto" as const,
    apiKey: undefined,
    models: undefined,
  }));
  return {
    listen: { host: "127.0.0.1", port: 0 },
    admin: { host: "127.0.0.1", port: 0 },
    log: { level: "silent", format: "json" },
    sessionKey: undefined,
    pools: [
      {
        name: "default",
        models: undefined,
        aliases: new Map(),
        policy: { name: "round_robin", options: {} },
        endpoints,
      },
    ],
    passthrough: [],
    limits: { bodyBytes: 64 * 1024 * 1024, headerBytes: 32 * 1024 },
    timeouts: {
      connectMs: 1_000,
      firstByteMs: 30_000,
      idleMs: 10_000,
      keepAliveMs: 75_000,
      upstreamKeepAliveMs: 3_000,
      drainMs: 1_000,
    },
    health: { intervalMs: 200, timeoutMs: 500, unhealthyAfter: 3, healthyAfter: 1, path: undefined },
    attempts: 3,
    ...overrides,
  };
}
