import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { cpuMsBetween, type ProcessUsage, parseStat, ranNs, type TreeUsage, treeUsage } from "./process-tree.ts";

const MS = 1e6;

function reading(...processes: readonly Partial<ProcessUsage>[]): TreeUsage {
  const defaults = { pid: 1, threadNs: new Map(), ownMs: 0, reapedMs: 0, residentBytes: 0 };
  return { cpuMs: 0, residentBytes: 0, processes: processes.map((usage) => ({ ...defaults, ...usage })) };
}

function threads(...ms: readonly number[]): Map<number, number> {
  return new Map(ms.map((value, id) => [id, value * MS]));
}

/** Uses at least so much CPU time. */
function burn(ms: number): void {
  const start = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(start);
    if (user + system >= ms * 1000) return;
  }
}

describe("parseStat", () => {
  it("reads a line whose command holds spaces and brackets", () => {
    const line = "42 (tmux: (1) x) S 7 42 42 0 -1 4194560 100 0 0 0 11 5 3 2 20 0 4 0 17 1000 250 184467";
    expect(parseStat(line)).toEqual({ pid: 42, parent: 7, ownTicks: 16, reapedTicks: 5, residentPages: 250 });
  });
});

describe("ranNs", () => {
  it("takes the time on a CPU, not the time waiting for one", () => {
    expect(ranNs("240773611 39378707 1326\n")).toBe(240_773_611);
  });
});

describe("cpuMsBetween", () => {
  it("counts nanoseconds of threads, whatever ticks round to", () => {
    const before = reading({ threadNs: threads(10.25, 1), ownMs: 0 });
    const after = reading({ threadNs: threads(11.5, 1.125), ownMs: 20 });
    expect(cpuMsBetween(before, after)).toBeCloseTo(1.375);
  });

  it("counts a thread that began meanwhile from its beginning", () => {
    expect(cpuMsBetween(reading({ threadNs: threads(5) }), reading({ threadNs: threads(6, 3) }))).toBeCloseTo(4);
  });

  it("does not lose a thread that ended meanwhile", () => {
    const before = reading({ threadNs: threads(100, 40), ownMs: 140 });
    const after = reading({ threadNs: threads(150), ownMs: 270 });
    expect(cpuMsBetween(before, after)).toBe(130);
  });

  it("does not count again what threads had used that ended before", () => {
    const before = reading({ threadNs: threads(100), ownMs: 600 });
    const after = reading({ threadNs: threads(107.5), ownMs: 610 });
    expect(cpuMsBetween(before, after)).toBeCloseTo(7.5);
  });

  it("counts a child that began meanwhile whole", () => {
    const parent = { threadNs: threads(5) };
    const child = { pid: 2, threadNs: threads(30), ownMs: 30 };
    expect(cpuMsBetween(reading(parent), reading(parent, child))).toBeCloseTo(30);
  });

  it("counts of a child that ended only what it used since the first reading", () => {
    const before = reading({ pid: 1, reapedMs: 500 }, { pid: 2, threadNs: threads(200), ownMs: 200, reapedMs: 50 });
    const after = reading({ pid: 1, reapedMs: 830 });
    expect(cpuMsBetween(before, after)).toBeCloseTo(80);
  });

  it("lies between what this process knows to have used within and around the readings", () => {
    const around = process.cpuUsage();
    const before = treeUsage(process.pid);
    burn(60);
    const usedMs = cpuMsBetween(before, treeUsage(process.pid));
    const { user, system } = process.cpuUsage(around);
    // A thread that runs is up to date as of the last tick of the kernel.
    expect(usedMs).toBeGreaterThan(60 - 10);
    expect(usedMs).toBeLessThan((user + system) / 1000 + 10);
  });

  it("finds the time of a real child that has ended", () => {
    const before = treeUsage(process.pid);
    spawnSync(process.execPath, ["-e", `(${burn})(150)`]);
    expect(cpuMsBetween(before, treeUsage(process.pid))).toBeGreaterThan(130);
  });
});
