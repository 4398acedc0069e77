import { describe, expect, it } from "vitest";
import { syntheticWorkload } from "./synthetic.ts";
import type { Workload, WorkloadRequest } from "./workload.ts";

function sessionsOf(workload: Workload): WorkloadRequest[][] {
  return workload.arrivals.map(({ request }) => {
    const chain: WorkloadRequest[] = [];
    for (let turn: WorkloadRequest | undefined = request; turn; turn = turn.next?.request) chain.push(turn);
    return chain;
  });
}

describe("syntheticWorkload", () => {
  it("makes the number of requests at the rate, the same for the same seed", () => {
    const make = (seed: number) => syntheticWorkload(`synthetic:rate=50,requests=20000,seed=${seed}`);
    const { arrivals } = make(1);
    expect(arrivals).toHaveLength(20_000);
    // 20,000 exponential gaps: five standard errors are 3.5 % of the mean.
    expect(Math.abs((20_000 / (arrivals.at(-1)?.atMs as number)) * 1000 - 50)).toBeLessThan(50 * 0.035);
    expect(make(1)).toEqual(make(1));
    expect(make(1).arrivals).not.toEqual(make(2).arrivals);
  });

  it("scatters arrivals as told", () => {
    const { arrivals } = syntheticWorkload("synthetic:rate=10,requests=50000,arrivals=gamma(3)");
    const gaps = arrivals.slice(1).map(({ atMs }, index) => (atMs - (arrivals[index]?.atMs as number)) / 100);
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
    // Five standard errors of the mean are 6.7 %; the deviation of so heavy a tail scatters by 2 %.
    expect(Math.abs(mean - 1)).toBeLessThan(0.067);
    expect(Math.abs(deviation / mean - 3)).toBeLessThan(0.3);
  });

  it("draws whole lengths of at least one token", () => {
    const { arrivals } = syntheticWorkload("synthetic:in=exp(1),out=uniform(0,9.5),requests=500");
    for (const { request } of arrivals) {
      for (const tokens of [request.promptTokens, request.outputTokens]) {
        expect(Number.isInteger(tokens) && tokens >= 1).toBe(true);
      }
    }
  });

  it("shares system prompts within a group only, by their full blocks", () => {
    const { arrivals, blockTokens } = syntheticWorkload("synthetic:requests=300,prefix=3x200,in=300");
    const firsts = new Map<number, number[]>();
    for (const { request } of arrivals) {
      expect(request.promptTokens).toBe(500);
      expect(request.blockIds).toHaveLength(Math.floor(500 / blockTokens));
      firsts.set(request.blockIds[0] as number, request.blockIds.slice(0, 3) as number[]);
    }
    expect([...firsts.values()].sort((a, b) => (a[0] as number) - (b[0] as number))).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6, 7, 8],
    ]);
    const own = arrivals.flatMap(({ request }) => request.blockIds.slice(3));
    expect(new Set(own).size).toBe(own.length);
    expect(Math.min(...own)).toBe(9);
  });

  it("lets a session's prompts grow by answer and new text, and its chain with them", () => {
    const spec = "synthetic:requests=12,turns=4,in=100,out=50,prefix=1x64,think=2s";
    const sessions = sessionsOf(syntheticWorkload(spec));
    expect(sessions.map((turns) => turns.map(({ promptTokens }) => promptTokens))).toEqual(
      [1, 2, 3].map(() => [164, 314, 464, 614]),
    );
    for (const turns of sessions) {
      const longest = turns.at(-1)?.blockIds as number[];
      for (const { blockIds, promptTokens, next } of turns) {
        expect(blockIds).toEqual(longest.slice(0, Math.floor(promptTokens / 64)));
        if (next !== undefined) expect(next.thinkMs).toBe(2000);
      }
      expect(new Set(turns.map(({ sessionKey }) => sessionKey)).size).toBe(1);
    }
    const others = sessions.map((turns) => turns[0]?.blockIds[1]);
    expect(new Set(others).size).toBe(3);
  });

  it("cuts the last session to make the number of requests exact", () => {
    const sessions = sessionsOf(syntheticWorkload("synthetic:requests=10,turns=4"));
    expect(sessions.map(({ length }) => length)).toEqual([4, 4, 2]);
  });

  it("starts sessions so that all their turns together have the rate", () => {
    const { arrivals } = syntheticWorkload("synthetic:rate=20,requests=40000,turns=4");
    expect(arrivals).toHaveLength(10_000);
    // 10,000 exponential gaps: five standard errors are 5 %.
    expect(Math.abs((arrivals.at(-1)?.atMs as number) / 10_000 / 200 - 1)).toBeLessThan(0.05);
  });

  it("sends the turns of an open loop when their time has come", () => {
    const { arrivals } = syntheticWorkload("synthetic:rate=1,requests=30,turns=3,think=5s,loop=open");
    const times = arrivals.map(({ atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const keys = new Set(arrivals.map(({ request }) => request.sessionKey));
    expect(keys.size).toBe(10);
    for (const key of keys) {
      const turns = arrivals.filter(({ request }) => request.sessionKey === key);
      const [first = 0, second = 0, third = 0] = turns.map(({ atMs }) => atMs);
      expect(second - first).toBeCloseTo(5000, 6);
      expect(third - second).toBeCloseTo(5000, 6);
      expect(turns.every(({ request }) => request.next === undefined)).toBe(true);
    }
  });

  it("knows no sessions where each has one request", () => {
    expect(syntheticWorkload("synthetic:requests=1").arrivals[0]?.request.sessionKey).toBeUndefined();
  });
});
