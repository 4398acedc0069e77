import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createPollLoop, type PollLoop } from "./poll-loop.ts";

const DELAY_MS = 1_000;
const GAP_MS = 100;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A loop whose task takes `takesMs`, with the times at which its runs started. */
function watchedLoop(takesMs = 0): { readonly loop: PollLoop; readonly startsMs: number[] } {
  const startsMs: number[] = [];
  const originMs = Date.now();
  const nowMs = () => Date.now() - originMs;
  const loop = createPollLoop({
    task: async () => {
      startsMs.push(nowMs());
      if (takesMs > 0) await new Promise((resolve) => setTimeout(resolve, takesMs));
      return DELAY_MS;
    },
    minGapMs: GAP_MS,
    nowMs,
  });
  return { loop, startsMs };
}

describe("createPollLoop", () => {
  it("does nothing before it is told to", async () => {
    const { startsMs } = watchedLoop();
    await vi.advanceTimersByTimeAsync(10 * DELAY_MS);
    expect(startsMs).toEqual([]);
  });

  it("waits from the end of one run to the start of the next", async () => {
    const { loop, startsMs } = watchedLoop(500);
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(startsMs).toEqual([0, 1_500, 3_000]);
  });

  it("brings the next run forward", async () => {
    const { loop, startsMs } = watchedLoop();
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(400);
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(0);
    expect(startsMs).toEqual([0, 400]);
  });

  it("keeps its gap however often it is asked", async () => {
    const { loop, startsMs } = watchedLoop();
    loop.runSoon();
    for (let step = 0; step < 30; step++) {
      await vi.advanceTimersByTimeAsync(10);
      loop.runSoon();
    }
    expect(startsMs).toEqual([0, 100, 200, 300]);
  });

  it("never delays a run that is already due", async () => {
    const { loop, startsMs } = watchedLoop();
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(DELAY_MS - 1);
    loop.runSoon();
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(1);
    expect(startsMs).toEqual([0, DELAY_MS - 1]);
  });

  it("runs once more, not at the same time, when it is asked during a run", async () => {
    const { loop, startsMs } = watchedLoop(500);
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(200);
    loop.runSoon();
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(299);
    expect(startsMs).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(400);
    expect(startsMs).toHaveLength(2);
  });

  it("stops for good, and waits for the run under way", async () => {
    const { loop, startsMs } = watchedLoop(500);
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(100);
    let hasStopped = false;
    const stopping = loop.stop().then(() => {
      hasStopped = true;
    });
    await vi.advanceTimersByTimeAsync(300);
    expect(hasStopped).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    await stopping;
    loop.runSoon();
    expect(vi.getTimerCount()).toBe(0);
    expect(startsMs).toEqual([0]);
  });

  it("can be stopped between runs, twice, and before any", async () => {
    const { loop, startsMs } = watchedLoop();
    loop.runSoon();
    await vi.advanceTimersByTimeAsync(1);
    await loop.stop();
    await loop.stop();
    expect(vi.getTimerCount()).toBe(0);
    expect(startsMs).toEqual([0]);
    await watchedLoop().loop.stop();
  });
});
