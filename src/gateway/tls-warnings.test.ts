import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { createAuthority } from "../../test/support/certificates.ts";
import { testConfig, testEndpoint } from "../../test/support/test-config.ts";
import { Secret } from "../config/index.ts";
import type { Config, EndpointTls } from "../runtime/index.ts";
import { warnOfTls } from "./tls-warnings.ts";

const DAY_MS = 86_400_000;
const { cert, key } = createAuthority().issue(["localhost"], 1);

function warnings(config: Config, nowMs?: number): { msg: string; endpoint?: string }[] {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  warnOfTls({ config, log }, nowMs);
  return lines.map((line) => JSON.parse(line));
}

function configWith(tls: Partial<EndpointTls>): Config {
  const settings = { ca: undefined, cert: undefined, key: undefined, serverName: undefined, isVerified: true, ...tls };
  const endpoints = [testEndpoint("e1", "https://localhost:1", { tls: settings })];
  return testConfig([], { tls: { cert, key: new Secret(key), clientCa: undefined }, pool: { endpoints } });
}

describe("warnOfTls", () => {
  it("says nothing of certificates that are valid", () => {
    expect(warnings(configWith({ cert, key: new Secret(key) }))).toEqual([]);
  });

  it.each([
    ["are over", 2 * DAY_MS],
    ["have not begun", -2 * DAY_MS],
  ])("says whose days %s, and shows nothing else of it", (_what, offsetMs) => {
    const found = warnings(configWith({ cert, key: new Secret(key) }), Date.now() + offsetMs);
    expect(found.map(({ endpoint }) => endpoint)).toEqual([undefined, "e1"]);
    for (const { msg } of found) expect(msg).toContain("not valid now");
    expect(JSON.stringify(found)).not.toContain("-----BEGIN");
  });

  it("names endpoints that are not verified", () => {
    expect(warnings(configWith({ isVerified: false }))).toMatchObject([{ endpoint: "e1", pool: "default" }]);
  });
});
