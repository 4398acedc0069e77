import { describe, expect, it } from "vitest";
import { peerPolicies } from "../../src/sim/index.ts";
import type { Cell } from "./cells.ts";
import type { Figures } from "./contest.ts";
import { DISTURBANCES } from "./disturbed.ts";
import { isAllMet, routingText } from "./report.ts";
import type { RoutingResult } from "./result.ts";
import { runRouting } from "./run.ts";
import { atMost, goodputWithTpotTarget } from "./targets.ts";
import type { Trial } from "./trial.ts";

const CELL: Cell = {
  name: "traffic",
  fleet: "2*llama8b-h100",
  slo: { ttftMs: 2000, tpotMs: 50 },
  use: "report",
  targets: [atMost("e2eMs", 0.9)],
  hasReplicas: false,
  workload: () => ({ name: "", blockTokens: 64, arrivals: [] }),
};

/** Peers get slower in the order of the table: only the first of each class are near its best. */
const peerE2eMs = new Map(peerPolicies.map(({ definition }, index) => [definition.name, 1000 * 2 ** index]));

async function runWith(ours: (trial: Trial) => number, cell: Partial<Cell> = {}): Promise<[RoutingResult, Trial[]]> {
  const trials: Trial[] = [];
  const result = await runRouting({
    cells: [{ ...CELL, ...cell }],
    seeds: 3,
    isQuick: false,
    progress: () => undefined,
    run: async (trial) => {
      trials.push(trial);
      const e2eMs = peerE2eMs.get(trial.policy) ?? ours(trial);
      return { figures: figures(e2eMs), requests: 100, ended: 100, wallMs: 10, cpuMs: 10 };
    },
  });
  return [result, trials];
}

function figures(e2eMs: number): Figures {
  return { e2eMs, ttftMs: e2eMs / 10, ttftP99Ms: e2eMs, goodputPercent: 1e5 / e2eMs, longestWaitMs: 0 };
}

describe("runRouting", () => {
  it("runs every peer on the first seed, and on the others whoever came near the best of its class", async () => {
    const [{ cells }, trials] = await runWith(() => 800);
    const seedsOf = (name: string) => trials.filter(({ policy }) => policy === name).map(({ seed }) => seed);
    const [first, second] = peerPolicies.map(({ definition }) => definition.name);
    expect(seedsOf(first as string)).toEqual([1, 2, 3]);
    expect(seedsOf(second as string)).toEqual([1]);
    expect(cells[0]?.contenders.map((contender) => contender.class)).toEqual(["plain", "own_hold", "expert_hold"]);
    expect(cells[0]?.verdicts).toMatchObject([{ rival: first, value: 0.8, isMet: true }]);
  });

  it("runs one seed where there is no target", async () => {
    const [{ cells }, trials] = await runWith(() => 800, { targets: [] });
    expect(new Set(trials.map(({ seed }) => seed))).toEqual(new Set([1]));
    expect(cells[0]?.seeds).toBe(1);
  });

  it("tells ours wrong only where it is ahead", async () => {
    const [ahead] = await runWith(({ disturbance }) => (disturbance === DISTURBANCES[0]?.name ? 1100 : 800));
    expect(ahead.cells[0]?.disturbed?.map(({ isMet }) => isMet)).toEqual(DISTURBANCES.map((_, index) => index > 0));
    expect(isAllMet(ahead)).toBe(false);
    const [behind, trials] = await runWith(() => 1200);
    expect(behind.cells[0]?.disturbed).toBeUndefined();
    expect(trials.some(({ disturbance }) => disturbance !== undefined)).toBe(false);
  });

  it("tries ours with a target of time per token only where it is judged by that, and judges it", async () => {
    const [{ cells }] = await runWith(({ hasTpotTarget }) => (hasTpotTarget ? 10 : 1e9), {
      targets: [goodputWithTpotTarget(-5)],
    });
    expect(cells[0]?.verdicts[0]?.isMet).toBe(true);
    expect((await runWith(() => 800))[0].cells[0]?.ours.withTpotTarget).toBeUndefined();
  });

  it("compares several balancers with one", async () => {
    const ours = ({ replicas }: Trial) => (replicas === undefined ? 800 : replicas.exchangeMs === 200 ? 820 : 1600);
    const [result] = await runWith(ours, { hasReplicas: true });
    expect(result.cells[0]?.replicated).toMatchObject({ count: 4, isMet: true, aloneE2eLoss: 1 });
    expect(result.cells[0]?.replicated?.e2eLoss).toBeCloseTo(0.025);
    expect(isAllMet(result)).toBe(true);
  });

  it("asks for no run twice", async () => {
    const [, trials] = await runWith(() => 800, { hasReplicas: true });
    expect(new Set(trials.map((trial) => JSON.stringify(trial))).size).toBe(trials.length);
  });
});

describe("routingText", () => {
  it("says what is met, what is missed and by how much", async () => {
    const [result] = await runWith(() => 950, { targets: [atMost("e2eMs", 0.9), atMost("e2eMs", 0.95)] });
    const text = routingText(result);
    expect(text).toContain("E2E <= 0.9x best: x0.950 against sglang_cache_aware, MISSED by 0.050");
    expect(text).toContain("E2E <= 0.95x best: x0.950 against sglang_cache_aware, met");
    expect(text).toContain("Targets of the table: 1 of 2 met");
    expect(isAllMet(result)).toBe(false);
  });
});
