import { describe, expect, it } from "vitest";
import { readWeka } from "./weka.ts";
import type { Workload, WorkloadRequest } from "./workload.ts";

const ids = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);
const turn = (t: number, fields: object = {}) => ({
  t,
  type: "n",
  in: 640,
  out: 20,
  hash_ids: ids(1, 10),
  api_time: 2,
  think_time: 0,
  ...fields,
});
const session = (requests: object[], fields: object = {}) =>
  JSON.stringify({ id: "s", block_size: 64, hash_id_scope: "local", requests, ...fields });
const fine = { name: "w", blockTokens: 64 };

function chainOf(workload: Workload, index = 0): WorkloadRequest[] {
  const chain: WorkloadRequest[] = [];
  for (let request = workload.arrivals[index]?.request; request; request = request.next?.request) chain.push(request);
  return chain;
}
const thinks = (workload: Workload) => chainOf(workload).map(({ next }) => next?.thinkMs);

describe("readWeka", () => {
  it("chains a session's requests by the recorded think times", () => {
    const text = session([turn(0), turn(5.5, { in: 700, out: 30, think_time: 3 }), turn(60, { think_time: 52.5 })]);
    const workload = readWeka(text, fine);
    expect(workload.arrivals).toHaveLength(1);
    expect(thinks(workload)).toEqual([3000, 52_500, undefined]);
    expect(chainOf(workload)[1]).toMatchObject({ promptTokens: 700, outputTokens: 30, sessionKey: "s:1" });
  });

  it("takes the time between requests where the answer before has no recorded duration", () => {
    // The recorded think time then counts from an earlier answer: 35 s here, though the last request was 22 s ago.
    const unmeasured = { api_time: undefined };
    const text = session([
      turn(0),
      turn(27, { ...unmeasured, think_time: 25 }),
      turn(49, { think_time: 47 }),
      turn(80),
    ]);
    expect(thinks(readWeka(text, fine))).toEqual([25_000, 22_000, 0, undefined]);
  });

  it("takes the time between answer and request where no think time is recorded", () => {
    expect(thinks(readWeka(session([turn(0), turn(9, { think_time: undefined })]), fine))).toEqual([7000, undefined]);
  });

  it("puts sub-agents, which the parent waits for, into its chain one after another", () => {
    const subAgent = (endS: number, lastsS: number, out: number) => ({
      t: endS,
      type: "subagent",
      duration_ms: lastsS * 1000,
      requests: [turn(0, { out }), turn(6, { out: out + 1, think_time: 4 })],
    });
    // Both start at 3 s, a second after the parent's answer; the longer one ends at 43 s, the parent goes on at 50 s.
    const text = session([turn(0), subAgent(33, 30, 100), subAgent(43, 40, 200), turn(50, { think_time: 48 })]);
    const workload = readWeka(text, fine);
    expect(chainOf(workload).map(({ outputTokens }) => outputTokens)).toEqual([20, 100, 101, 200, 201, 20]);
    expect(thinks(workload)).toEqual([1000, 4000, 0, 4000, 7000, undefined]);
    expect(new Set(chainOf(workload).map(({ sessionKey }) => sessionKey)).size).toBe(1);
  });

  it("passes over a sub-agent without requests", () => {
    const empty = { t: 20, type: "subagent", duration_ms: 15_000, requests: [] };
    expect(thinks(readWeka(session([turn(0), empty, turn(30, { think_time: 28 })]), fine))).toEqual([
      28_000,
      undefined,
    ]);
  });

  it("keeps ids of different sessions apart and those of one session equal", () => {
    const workload = readWeka([session([turn(0), turn(9)]), session([turn(0)]), session([turn(0)])], fine);
    const blocks = [0, 1, 2].map((index) => chainOf(workload, index).map(({ blockIds }) => blockIds));
    expect(blocks[0]?.[1]).toEqual(blocks[0]?.[0]);
    expect(new Set(blocks.flatMap((chains) => chains[0]))).toHaveProperty("size", 30);
    expect(workload.arrivals.map(({ request }) => request.sessionKey)).toEqual(["s:1", "s:2", "s:3"]);
  });

  it("names a coarse block by the last block in it and leaves the unfilled rest out", () => {
    const request = (fields: object) => turn(0, { in: 64 * 10 + 5, ...fields });
    const [first, second] = chainOf(
      readWeka(session([request({ hash_ids: ids(1, 10) }), request({ hash_ids: [...ids(1, 4), ...ids(50, 6)] })]), {
        name: "w",
        blockTokens: 256,
      }),
    );
    expect(first?.blockIds).toEqual([4, 8]);
    expect(second?.blockIds).toEqual([4, 53]);
  });

  it("leaves out a block that the file counts but the prompt does not fill", () => {
    const workload = readWeka(session([turn(0, { in: 100, hash_ids: [1, 2] })]), fine);
    expect(workload.arrivals[0]?.request.blockIds).toEqual([1]);
  });

  it("counts an empty answer as one token", () => {
    expect(readWeka(session([turn(0, { out: 0 })]), fine).arrivals[0]?.request.outputTokens).toBe(1);
  });

  it("ends a session before its first prompt above the bound, and moves no other", () => {
    const long = session([turn(0), turn(5, { in: 641 }), turn(9)]);
    const tooLong = session([turn(0, { in: 700 }), turn(5)]);
    const lines = [long, tooLong, session([turn(0)])];
    const bound = readWeka(lines, { ...fine, maxPromptTokens: 640 });
    const unbound = readWeka(lines, fine);
    expect(chainOf(bound)).toHaveLength(1);
    expect(bound.arrivals.map(({ atMs }) => atMs)).toEqual([0, 2].map((index) => unbound.arrivals[index]?.atMs));
  });

  it("takes the chosen sessions only", () => {
    const lines = ids(0, 5).map((id) => session([turn(0)], { id: `s${id}` }));
    const { arrivals } = readWeka(["not even looked at", ...lines], { ...fine, sessions: { from: 2, to: 4 } });
    expect(arrivals.map(({ request }) => request.sessionKey)).toEqual(["s1:3", "s2:4", "s3:5"]);
  });

  it.each([
    { from: 0, to: 2 },
    { from: 2, to: 2 },
  ])("says how many sessions there are when $from to $to are wanted", (sessions) => {
    const lines = [session([turn(0)]), session([turn(0)])];
    expect(() => readWeka(lines, { ...fine, sessions })).toThrow(
      `sessions ${sessions.from} to ${sessions.to} wanted, but there are only 2, counted from 0`,
    );
  });

  it("starts sessions at random with the mean gap, the same for the same seed", () => {
    const lines = ids(0, 2000).map(() => session([turn(0)]));
    const starts = (seed: number) =>
      readWeka(lines, { ...fine, sessionGapMs: 500, seed }).arrivals.map(({ atMs }) => atMs);
    // 2,000 exponential gaps: five standard errors are 11 % of the mean.
    expect(Math.abs((starts(1).at(-1) as number) / 2000 / 500 - 1)).toBeLessThan(0.11);
    expect(starts(1)).toEqual(starts(1));
    expect(starts(1)).not.toEqual(starts(2));
  });

  it.each([
    [
      "a request",
      session([turn(0), turn(3, { in: "x" })]),
      'requests[1]: in: expected a whole number of at least 1, got "x"',
    ],
    [
      "a sub-agent's request",
      session([{ t: 1, duration_ms: 1, requests: [turn(0, { hash_ids: 5 })] }]),
      "requests[0]: requests[0]: hash_ids: expected a list of whole numbers, got 5",
    ],
    ["the scope of ids", session([turn(0)], { hash_id_scope: "global" }), 'hash_id_scope: expected "local"'],
    ["the size of blocks", session([turn(0)], { block_size: 48 }), "block_size: 64 tokens per block wanted"],
    [
      "the requests",
      JSON.stringify({ id: "s", block_size: 64 }),
      "requests: expected a list of JSON objects, got nothing",
    ],
  ])("names the place where %s is wrong", (_, line, message) => {
    expect(() => readWeka([session([turn(0)]), line], fine)).toThrow(`line 2: ${message}`);
  });
});
