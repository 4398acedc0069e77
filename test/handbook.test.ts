import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { handbook, handbookText } from "../bench/handbook.ts";

describe("the handbook's demonstrations", () => {
  const { distribution, tokenAware, sessions } = handbook();

  it("spreads 1000 requests over three loaded endpoints as each rule does", () => {
    expect(distribution.endpoints).toEqual([
      { id: "gpu-0", load: 30, capacity: 100 },
      { id: "gpu-1", load: 70, capacity: 100 },
      { id: "gpu-2", load: 50, capacity: 150 },
    ]);
    expect(distribution.roundRobin).toEqual([334, 333, 333]);
    expect(distribution.leastConnections).toEqual([1000, 0, 0]);
    expect(distribution.weightedRandom).toEqual([346, 148, 506]);
  });

  it("draws by free capacity to within chance of 35, 15 and 50 %", () => {
    const shares = [350, 150, 500];
    // Binomial, n = 1000: standard deviations 15.1, 11.3 and 15.8; four of them.
    distribution.weightedRandom.forEach((count, index) => {
      expect(Math.abs(count - (shares[index] ?? 0))).toBeLessThan([60, 45, 63][index] ?? 0);
    });
  });

  it("shows both endpoints at 70 % and sends three requests to gpu-0", () => {
    expect(tokenAware.endpoints).toEqual([
      { id: "gpu-0", prefillTokens: 8000, decodeTokens: 2000, tokensPerSecond: 4000, loadPercent: 70 },
      { id: "gpu-1", prefillTokens: 2000, decodeTokens: 500, tokensPerSecond: 1000, loadPercent: 70 },
    ]);
    expect(tokenAware.decisions).toEqual([
      { prefillTokens: 200, decodeTokens: 80, loadAfterPercent: { "gpu-0": 72.5, "gpu-1": 80 }, endpoint: "gpu-0" },
      { prefillTokens: 1500, decodeTokens: 50, loadAfterPercent: { "gpu-0": 77.5, "gpu-1": 90 }, endpoint: "gpu-0" },
      { prefillTokens: 100, decodeTokens: 140, loadAfterPercent: { "gpu-0": 81.3, "gpu-1": 85 }, endpoint: "gpu-0" },
    ]);
  });

  it("routes sessions by MD5 modulo the number of endpoints", () => {
    expect(sessions.endpoints).toEqual(["gpu-0", "gpu-1", "gpu-2"]);
    expect(sessions.routes).toEqual([
      { session: "user-123-conv-456", endpoint: "gpu-0" },
      { session: "user-123-conv-456", endpoint: "gpu-0" },
      { session: "user-123-conv-456", endpoint: "gpu-0" },
      { session: "user-100", endpoint: "gpu-0" },
      { session: "user-200", endpoint: "gpu-1" },
      { session: "user-300", endpoint: "gpu-0" },
    ]);
  });

  it("prints every figure as a table", () => {
    const text = handbookText({ distribution, tokenAware, sessions });
    expect(text).toMatch(/round_robin +334 +333 +333\n/);
    expect(text).toMatch(/least_connections +1000 +0 +0\n/);
    expect(text).toMatch(/weighted_random +346 +148 +506\n/);
    expect(text.match(/70\.0 %/g)).toHaveLength(2);
    expect(text.match(/user-123-conv-456 +gpu-0/g)).toHaveLength(3);
    expect(text).toMatch(/user-100 +gpu-0\n +user-200 +gpu-1\n +user-300 +gpu-0\n/);
  });

  it("prints one JSON object with --json", () => {
    const printed = execFileSync(process.execPath, ["--import", "tsx", "bench/handbook.ts", "--json"], {
      encoding: "utf8",
    });
    expect(JSON.parse(printed)).toEqual({ distribution, tokenAware, sessions });
  });
});
