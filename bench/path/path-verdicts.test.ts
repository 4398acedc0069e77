import { describe, expect, it } from "vitest";
import { pathVerdicts } from "./path-verdicts.ts";
import type { PeerResult } from "./run.ts";

function peer(name: string, costs: readonly [us: number, usPerEvent: number] | undefined): PeerResult {
  const medians = costs && {
    cpuUsPerRequest: costs[0],
    cpuUsPerEvent: costs[1],
    requestsPerSecond: 1,
    eventsPerSecond: 1,
    residentBytes: 1,
  };
  const isLlmRouter = ["sglang", "smg", "vllm"].includes(name);
  return {
    name,
    settings: "",
    client: { connections: 1, streams: 1 },
    isLlmRouter,
    version: "1",
    medians,
    rounds: [],
    failure: medians ? undefined : "broken",
  };
}

const OTHERS = [
  peer("nginx", [20, 12]),
  peer("envoy", [60, 20]),
  peer("sglang", [130, 26]),
  peer("smg", [190, 24]),
  peer("vllm", [400, 40]),
];

function marks(peers: readonly PeerResult[]): (boolean | undefined)[] {
  return pathVerdicts({ peers }).map(({ isMet }) => isMet);
}

describe("pathVerdicts", () => {
  it("compares with nginx, with envoy and with the cheapest router of each row", () => {
    const verdicts = pathVerdicts({ peers: [...OTHERS, peer("evenkeel", [50, 18])] });
    expect(verdicts.map(({ measured }) => measured)).toEqual([
      "2.50 x nginx",
      "0.83 x envoy",
      "0.38 x sglang",
      "1.50 x nginx",
      "0.90 x envoy",
      "0.75 x smg",
    ]);
    expect(verdicts.every(({ isMet }) => isMet)).toBe(true);
  });

  it("meets 'at most' with exactly as much, and 'below' not", () => {
    expect(marks([...OTHERS, peer("evenkeel", [60, 20])])).toEqual([true, false, true, true, true, true]);
    expect(marks([...OTHERS, peer("evenkeel", [65, 21])])).toEqual([false, false, true, true, false, true]);
    expect(marks([...OTHERS, peer("evenkeel", [66, 24])])).toEqual([false, false, false, false, false, false]);
  });

  it("calls nothing met for which a peer is missing", () => {
    expect(marks([peer("nginx", [20, 12]), peer("evenkeel", [50, 18])])).toEqual([
      true,
      undefined,
      undefined,
      true,
      undefined,
      undefined,
    ]);
    expect(marks([...OTHERS])).toEqual(Array(6).fill(undefined));
  });

  it("can miss against some of the routers, but meet only against all", () => {
    const few = [peer("nginx", [20, 12]), peer("envoy", [60, 20]), peer("sglang", [130, 26]), peer("smg", undefined)];
    expect(marks([...few, peer("evenkeel", [50, 18])])).toEqual([true, true, undefined, true, true, undefined]);
    expect(marks([...few, peer("evenkeel", [90, 27])])).toEqual([false, false, false, false, false, false]);
  });
});
