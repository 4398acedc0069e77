import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLog } from "../runtime/index.ts";
import { type Supervised, Supervisor } from "./supervisor.ts";

/** A process that begins, and ends, when the test says so. */
class FakeWorker implements Supervised {
  readonly pid = 1;
  readonly started: Promise<string>;
  readonly ended: Promise<string>;
  readonly number: number;
  isDraining = false;
  isKilled = false;
  starts: () => void = () => {};
  fails: (reason: string) => void = () => {};
  ends: (how: string) => void = () => {};

  constructor(number: number) {
    this.number = number;
    this.started = new Promise((resolve, reject) => {
      this.starts = () => resolve("http://a");
      this.fails = (reason) => reject(new Error(reason));
    });
    this.started.catch(() => {});
    this.ended = new Promise((resolve) => {
      this.ends = resolve;
    });
  }

  drain(): void {
    this.isDraining = true;
  }

  kill(): void {
    this.isKilled = true;
    this.ends("SIGKILL");
  }
}

function supervised(
  count: number,
  joins: (worker: FakeWorker, serves: () => void) => Promise<void> = async (_worker, serves) => serves(),
): {
  readonly supervisor: Supervisor<FakeWorker>;
  /** Every one there ever was. */
  readonly forked: readonly FakeWorker[];
  readonly left: readonly number[];
} {
  const forked: FakeWorker[] = [];
  const left: number[] = [];
  const supervisor = new Supervisor<FakeWorker>({
    count,
    clock: { nowMs: () => Date.now() },
    log: createLog({ level: "silent", format: "json" }),
    fork: (number) => {
      const worker = new FakeWorker(number);
      forked.push(worker);
      return worker;
    },
    joins,
    left: ({ number }) => void left.push(number),
  });
  return { supervisor, forked, left };
}

async function serving(count: number): Promise<ReturnType<typeof supervised>> {
  const all = supervised(count);
  const started = all.supervisor.start();
  for (const worker of all.forked) worker.starts();
  expect(await started).toBe("http://a");
  return all;
}

function numbersOf(workers: readonly FakeWorker[]): number[] {
  return workers.map(({ number }) => number);
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("Supervisor", () => {
  it("serves when all do, and ends all when one cannot", async () => {
    const { supervisor, forked } = supervised(3);
    const started = supervisor.start();
    const outcome = expect(started).rejects.toThrow("no port");
    forked[0]?.starts();
    forked[1]?.fails("no port");
    await outcome;
    expect(forked.map(({ isKilled }) => isKilled)).toEqual([true, true, true]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(forked).toHaveLength(3);
  });

  it("does not take a start for good during which one died", async () => {
    const { supervisor, forked } = supervised(2);
    const outcome = expect(supervisor.start()).rejects.toThrow("died");
    forked[0]?.starts();
    await vi.advanceTimersByTimeAsync(0);
    forked[0]?.ends("SIGSEGV");
    await vi.advanceTimersByTimeAsync(0);
    forked[1]?.starts();
    await outcome;
  });

  it("does not count on one that dies while it waits to serve with the others", async () => {
    const turns: (() => void)[] = [];
    const { supervisor, forked } = supervised(2, (_worker, serves) =>
      new Promise<void>((resolve) => void turns.push(resolve)).then(serves),
    );
    const outcome = expect(supervisor.start()).rejects.toThrow("died");
    for (const worker of forked) worker.starts();
    await vi.advanceTimersByTimeAsync(0);
    forked[0]?.ends("SIGSEGV");
    await vi.advanceTimersByTimeAsync(0);
    for (const hasTurn of turns) hasTurn();
    await outcome;
    expect(supervisor.serving).toEqual([]);
  });

  it("puts another in the place of one that died, later each time that it dies young", async () => {
    const { supervisor, forked, left } = await serving(2);
    forked[0]?.ends("SIGKILL");
    await vi.advanceTimersByTimeAsync(99);
    expect([numbersOf(supervisor.serving), left, forked.length]).toEqual([[2], [1], 2]);
    await vi.advanceTimersByTimeAsync(1);
    expect(numbersOf(forked)).toEqual([1, 2, 1]);
    forked[2]?.fails("no port");
    await vi.advanceTimersByTimeAsync(0);
    expect(forked[2]?.isKilled).toBe(true);
    await vi.advanceTimersByTimeAsync(199);
    expect(forked).toHaveLength(3);
    await vi.advanceTimersByTimeAsync(1);
    forked[3]?.starts();
    await vi.advanceTimersByTimeAsync(0);
    expect([numbersOf(supervisor.serving), supervisor.deaths]).toEqual([[1, 2], 2]);
  });

  it("drains all, replaces none by then, and ends those that take too long", async () => {
    const { supervisor, forked } = await serving(3);
    forked[2]?.ends("exit code 1");
    await vi.advanceTimersByTimeAsync(0);
    const drained = supervisor.drain(5_000);
    expect(forked.slice(0, 2).every(({ isDraining }) => isDraining)).toBe(true);
    forked[0]?.ends("exit code 0");
    await vi.advanceTimersByTimeAsync(4_999);
    expect([forked.length, forked[1]?.isKilled]).toEqual([3, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(forked[1]?.isKilled).toBe(true);
    await drained;
    expect(supervisor.serving).toEqual([]);
  });
});
