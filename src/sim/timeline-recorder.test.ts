import { describe, expect, it } from "vitest";
import type { EndpointSample } from "./result.ts";
import { TimelineRecorder } from "./timeline-recorder.ts";

const sampleAt = (atMs: number): EndpointSample[] => [{ running: atMs, waiting: 0, held: 0, kvUsedRatio: 0 }];

describe("TimelineRecorder", () => {
  it("samples at even intervals, about two hundred times over what is expected", () => {
    const recorder = new TimelineRecorder(["a"], sampleAt, 100_000);
    for (let nowMs = 0; nowMs <= 100_000; nowMs += 37) recorder.recordUntil(nowMs);
    const { atMs, endpoints } = recorder.timeline();
    expect(atMs.length).toBeGreaterThan(190);
    expect(atMs.length).toBeLessThan(260);
    const gaps = new Set(atMs.slice(1).map((each, i) => Math.round(each - (atMs[i] as number))));
    expect(gaps.size).toBe(1);
    expect(endpoints.a?.map(({ running }) => running)).toEqual(atMs);
  });

  it("thins out when it takes much longer than expected, and covers all of it", () => {
    const recorder = new TimelineRecorder(["a"], sampleAt, 0);
    recorder.recordUntil(3_600_000);
    const { atMs } = recorder.timeline();
    expect(atMs.length).toBeGreaterThan(100);
    expect(atMs.length).toBeLessThan(260);
    expect(atMs[0]).toBe(0);
    expect(atMs.at(-1)).toBeGreaterThan(3_500_000);
  });
});
