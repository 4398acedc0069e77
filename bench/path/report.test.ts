import { describe, expect, it } from "vitest";
import { pathText } from "./report.ts";
import type { PathResult, PeerResult } from "./run.ts";
import { WORKLOAD } from "./workload.ts";

const { connections, streams } = WORKLOAD;
const HOST = { cpu: "x", cores: 2, memoryGb: 1, kernel: "6", node: "v20" };
const COST = { units: 1, cpuUsPerUnit: 1, unitsPerSecond: 1 };
/** What the origins send, of as many streams as usual. */
const PACE = (streams * 1000) / WORKLOAD.eventGapMs;

function peer(name: string, fields: Partial<PeerResult> = {}): PeerResult {
  return {
    name,
    settings: "as usual",
    client: { connections, streams },
    isLlmRouter: false,
    version: "1.0",
    medians: medians(10, PACE),
    rounds: [{ requests: COST, events: COST, othersShare: 0.012 }],
    failure: undefined,
    ...fields,
  };
}

function medians(cpuUsPerRequest: number, eventsPerSecond: number): NonNullable<PeerResult["medians"]> {
  return { cpuUsPerRequest, cpuUsPerEvent: 5, requestsPerSecond: 1, eventsPerSecond, residentBytes: 30e6 };
}

function linesOf(...peers: readonly PeerResult[]): string[] {
  const result: PathResult = { host: HOST, workload: WORKLOAD, rounds: 1, peers };
  return pathText(result).split("\n");
}

describe("pathText", () => {
  it("compares with nginx", () => {
    const row = linesOf(peer("nginx"), peer("envoy", { medians: medians(45, PACE) })).find((line) =>
      /^envoy /.test(line),
    );
    expect(row?.split(/ +/)).toEqual(["envoy", "1.0", "45.0", "4.50", "5.0", "1.00", "1", String(PACE), "30"]);
  });

  it("names who failed, with why, and who was not asked for", () => {
    const lines = linesOf(peer("nginx"), peer("smg", { medians: undefined, failure: "events: the stream was cut" }));
    expect(lines).toContain("smg FAILED: events: the stream was cut");
    expect(lines).toContain("Not in this run: haproxy, envoy, sglang, vllm, evenkeel, portkey, litellm");
  });

  it("says who brought events late, measured by its own streams", () => {
    const light = { client: { connections: 4, streams: streams / 10 } };
    const lines = linesOf(
      peer("nginx", { medians: medians(10, 0.95 * PACE) }),
      peer("smg", { medians: medians(10, 0.8 * PACE) }),
      peer("portkey", { ...light, medians: medians(10, 0.099 * PACE) }),
      peer("litellm", { ...light, medians: medians(10, 0.06 * PACE) }),
    );
    expect(lines.find((line) => line.startsWith("Behind"))).toMatch(/: smg, litellm\./);
    expect(lines).toContain(`portkey: as usual; only 4 connections and ${streams / 10} streams`);
  });

  it("tells how much the others disturbed", () => {
    expect(linesOf(peer("nginx")).at(-1)).toContain("at most 1.2 % of a core");
  });
});
