import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type EngineProfile, engineProfile } from "../sim/index.ts";
import { EngineDriver, type EngineJob } from "./driver.ts";

const H100 = engineProfile("llama8b-h100") as EngineProfile;

function recordingJob(outputTokens: number): EngineJob & { readonly log: string[] } {
  const log: string[] = [];
  return {
    log,
    promptTokens: 16,
    outputTokens,
    blockHashes: [],
    prefilled: () => log.push("prefilled"),
    token: (generatedTokens) => log.push(`token ${generatedTokens}`),
    finished: () => log.push("finished"),
  };
}

describe("EngineDriver", () => {
  let driver: EngineDriver;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    driver = new EngineDriver(H100, 1);
  });

  afterEach(() => {
    driver.stop();
    vi.useRealTimers();
  });

  it("plays the model's events when their time has come", () => {
    const job = recordingJob(2);
    driver.submit(job);
    // A step of this model takes between 7 and 8 ms.
    vi.advanceTimersByTime(6);
    expect(job.log).toEqual([]);
    vi.advanceTimersByTime(3);
    expect(job.log).toEqual(["prefilled", "token 1"]);
    vi.advanceTimersByTime(8);
    expect(job.log).toEqual(["prefilled", "token 1", "token 2", "finished"]);
  });

  it("sleeps when there is nothing to do", () => {
    driver.submit(recordingJob(1));
    vi.advanceTimersByTime(100);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("stands still while frozen and goes on where it stood", () => {
    const job = recordingJob(2);
    driver.submit(job);
    vi.advanceTimersByTime(9);
    driver.freeze(1000);
    driver.freeze(500);
    vi.advanceTimersByTime(999);
    expect(job.log).toEqual(["prefilled", "token 1"]);
    // Frozen 9 ms after the start, so at least 5 ms of the second step are left.
    vi.advanceTimersByTime(4);
    expect(job.log).toEqual(["prefilled", "token 1"]);
    vi.advanceTimersByTime(6);
    expect(job.log).toEqual(["prefilled", "token 1", "token 2", "finished"]);
  });

  it("takes requests and aborts while frozen", () => {
    driver.freeze(50);
    const [kept, gone] = [recordingJob(1), recordingJob(1)];
    driver.submit(kept);
    driver.submit(gone);
    expect(driver.abort(gone)).toBe(true);
    expect(driver.signals().waitingRequests).toBe(1);
    vi.advanceTimersByTime(49);
    expect(kept.log).toEqual([]);
    vi.advanceTimersByTime(12);
    expect([kept.log.length, gone.log.length]).toEqual([3, 0]);
  });

  it("does nothing any more once stopped", () => {
    const [before, after] = [recordingJob(1), recordingJob(1)];
    driver.submit(before);
    driver.stop();
    driver.submit(after);
    driver.freeze(5);
    vi.advanceTimersByTime(1000);
    expect([...before.log, ...after.log]).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
