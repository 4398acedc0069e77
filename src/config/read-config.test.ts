import { describe, expect, it } from "vitest";
import type { Config } from "./config.ts";
import { readConfig } from "./load-config.ts";
import { formatProblem } from "./problem.ts";
import type { Sources } from "./read-settings.ts";

const file = (text: string) => ({ name: "evenkeel.yaml", text });

function configOf(sources: Sources): Config {
  const read = readConfig(sources);
  if (!read.ok) throw new Error(read.problems.map(formatProblem).join("\n"));
  return read.value;
}

describe("a configuration", () => {
  it("needs no more than an endpoint", () => {
    expect(configOf({ flags: { "--endpoint": ["http://a:8000"] } })).toMatchInlineSnapshot(`
      {
        "admin": {
          "host": "127.0.0.1",
          "port": 9090,
        },
        "adminKeys": [],
        "failover": {
          "attempts": 3,
          "budgetRatio": 0.2,
          "guardMs": 1000,
          "minRetriesPerSecond": 1,
          "resends": 1,
          "slowResends": 0,
        },
        "health": {
          "ejection": {
            "baseMs": 5000,
            "failureRatio": 0.5,
            "failures": 5,
            "maxMs": 300000,
            "maxRatio": 0.5,
            "minRequests": 20,
            "windowMs": 30000,
          },
          "healthyAfter": 2,
          "intervalMs": 5000,
          "path": undefined,
          "slowStartMs": 30000,
          "timeoutMs": 2000,
          "unhealthyAfter": 3,
        },
        "hedging": undefined,
        "keys": [],
        "limits": {
          "bodyBytes": 67108864,
          "bufferedBytes": 1073741824,
          "connections": 10000,
          "headerBytes": 32768,
        },
        "listen": {
          "host": "127.0.0.1",
          "port": 8080,
        },
        "log": {
          "format": "auto",
          "level": "info",
        },
        "passthrough": [],
        "pools": [
          {
            "aliases": Map {},
            "discovery": [],
            "endpoints": [
              {
                "apiKey": undefined,
                "engine": "auto",
                "id": "a:8000",
                "kvCapacityTokens": undefined,
                "maxRequests": undefined,
                "models": undefined,
                "tls": undefined,
                "tokensPerSecond": undefined,
                "url": "http://a:8000",
                "weight": 1,
              },
            ],
            "holding": {
              "maxBytes": 268435456,
              "maxRequests": 4096,
              "maxWaitMs": 180000,
              "promoteAfterMs": 10000,
            },
            "models": undefined,
            "name": "default",
            "policy": {
              "name": "least_delay",
              "options": {
                "lateBinding": true,
              },
            },
          },
        ],
        "recording": undefined,
        "sessionKey": undefined,
        "streams": {
          "heartbeatMs": undefined,
          "opensEarly": false,
        },
        "tenantKey": [],
        "timeouts": {
          "clientBodyMs": 300000,
          "clientHeadMs": 60000,
          "connectMs": 2000,
          "drainMs": 30000,
          "firstByteMs": 600000,
          "idleMs": 60000,
          "keepAliveMs": 75000,
          "totalMs": undefined,
          "upstreamKeepAliveMs": 3000,
        },
        "tls": undefined,
        "workers": 1,
      }
    `);
  });

  it("takes a flag over a variable, a variable over the file, the file over the default", () => {
    const { failover, health, listen, log } = configOf({
      file: file(
        "endpoints: [a:1]\nfailover: { attempts: 5 }\nlisten: 0.0.0.0:1\nhealth: { interval: 1s, timeout: 1s }\n",
      ),
      environment: { EVENKEEL_FAILOVER_ATTEMPTS: "6", EVENKEEL_LISTEN: "0.0.0.0:2" },
      flags: { "--failover-attempts": "7" },
    });
    expect(failover.attempts).toBe(7);
    expect(listen.port).toBe(2);
    expect(health.intervalMs).toBe(1000);
    expect(log.level).toBe("info");
  });

  it("takes lists from a variable with commas, and replaces the file's", () => {
    const { pools } = configOf({ file: file("endpoints: [a:1]"), environment: { EVENKEEL_ENDPOINTS: "b:1, c:1" } });
    expect(pools[0]?.endpoints.map(({ id }) => id)).toEqual(["b:1", "c:1"]);
  });

  it("sets a value inside a section that the file does not have", () => {
    expect(
      configOf({ environment: { EVENKEEL_ENDPOINTS: "a:1", EVENKEEL_TIMEOUTS_IDLE: "off" } }).timeouts.idleMs,
    ).toBeUndefined();
  });

  it("takes an empty variable for one that is not set", () => {
    expect(
      configOf({ environment: { EVENKEEL_ENDPOINTS: "a:1", EVENKEEL_FAILOVER_ATTEMPTS: "" } }).failover.attempts,
    ).toBe(3);
  });

  it("leaves variables alone that only look like its own", () => {
    expect(readConfig({ environment: { EVENKEEL_ENDPOINTS: "a:1", EVENKEEL_PORT: "tcp://10.0.0.1:80" } }).ok).toBe(
      true,
    );
  });

  it("gives pools the policy at the top unless they have one", () => {
    const { pools } = configOf({
      file: file(`
policy: round_robin
pools:
  - { name: small, models: [s], endpoints: [a:1] }
  - { name: large, models: [l], endpoints: [b:1], policy: { name: token_aware, horizonSeconds: 1 } }
`),
    });
    expect(pools.map(({ policy }) => policy)).toEqual([
      { name: "round_robin", options: {} },
      { name: "token_aware", options: { prefillWeight: 0.1, decodeWeight: 1, line: 0.95, horizonSeconds: 1 } },
    ]);
  });

  it("gives pools the bounds of holding at the top unless they have their own, one by one", () => {
    const { pools } = configOf({
      file: file(`
holding: { maxRequests: 100 }
pools:
  - { name: small, models: [s], endpoints: [a:1] }
  - { name: large, models: [l], endpoints: [b:1], holding: { maxWait: 10s } }
  - { name: other, models: [o], endpoints: [c:1], holding: { maxRequests: 0, maxBytes: 1MiB } }
`),
    });
    expect(pools.map(({ holding }) => holding)).toEqual([
      { maxRequests: 100, maxBytes: 2 ** 28, maxWaitMs: 180_000, promoteAfterMs: 10_000 },
      { maxRequests: 100, maxBytes: 2 ** 28, maxWaitMs: 10_000, promoteAfterMs: 10_000 },
      { maxRequests: 0, maxBytes: 2 ** 20, maxWaitMs: 180_000, promoteAfterMs: 10_000 },
    ]);
  });

  it("records only where it is told a file", () => {
    const endpoints = { "--endpoint": ["a:1"] };
    expect(configOf({ flags: { ...endpoints, "--recording-max-bytes": "1MB" } }).recording).toBeUndefined();
    expect(configOf({ flags: { ...endpoints, "--record": "traffic.jsonl" } }).recording).toEqual({
      file: "traffic.jsonl",
      maxBytes: 2 ** 30,
    });
  });

  it("accepts every form of an endpoint", () => {
    const { pools } = configOf({
      file: file(`
endpoints:
  - a:1
  - "[::1]:2"
  - { url: https://c/llm/, id: c, weight: 0, engine: vllm, tokensPerSecond: 900, kvCapacityTokens: 1000, models: [m] }
`),
    });
    expect(pools[0]?.endpoints.map(({ id, url, weight, engine }) => [id, url, weight, engine])).toEqual([
      ["a:1", "http://a:1", 1, "auto"],
      ["[::1]:2", "http://[::1]:2", 1, "auto"],
      ["c", "https://c/llm", 0, "vllm"],
    ]);
  });

  it("tells no sessions apart when the list of sources is empty", () => {
    expect(configOf({ file: file("endpoints: [a:1]\nsessionKey: []\n") }).sessionKey).toEqual([]);
    expect(configOf({ file: file("endpoints: [a:1]\n") }).sessionKey).toBeUndefined();
  });
});

describe("variables in the file", () => {
  it("stand for secrets, which are never shown", () => {
    const config = configOf({
      file: file(`endpoints: [{ url: "a:1", apiKey: "\${KEY}" }]`),
      environment: { KEY: "k3y42" },
    });
    expect(config.pools[0]?.endpoints[0]?.apiKey?.reveal()).toBe("k3y42");
    expect(JSON.stringify(config)).not.toContain("k3y42");
  });

  it("stand for numbers where numbers are expected, and for text elsewhere", () => {
    const { failover, pools } = configOf({
      file: file(`failover:\n  attempts: \${N}\nendpoints: [{ url: "a:1", apiKey: "\${N}" }]`),
      environment: { N: "4" },
    });
    expect(failover.attempts).toBe(4);
    expect(pools[0]?.endpoints[0]?.apiKey?.reveal()).toBe("4");
  });
});
