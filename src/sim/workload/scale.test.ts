import { describe, expect, it } from "vitest";
import { scaleRate, takeFirst, takeUntil } from "./scale.ts";
import { syntheticWorkload } from "./synthetic.ts";

const workload = syntheticWorkload("synthetic:rate=10,requests=40,turns=2,think=3s");

describe("scaleRate", () => {
  it("divides times of arrival and leaves think times and requests", () => {
    const doubled = scaleRate(workload, 2);
    expect(doubled.name).toBe(`${workload.name} x2`);
    expect(doubled.arrivals.map(({ atMs }) => atMs * 2)).toEqual(workload.arrivals.map(({ atMs }) => atMs));
    expect(doubled.arrivals.map(({ request }) => request)).toEqual(workload.arrivals.map(({ request }) => request));
    expect(doubled.arrivals[0]?.request.next?.thinkMs).toBe(3000);
  });
});

describe("a part of a workload", () => {
  it("is what arrives before a time", () => {
    const endMs = workload.arrivals[7]?.atMs as number;
    expect(takeUntil(workload, endMs).arrivals).toEqual(workload.arrivals.slice(0, 7));
  });

  it("is the first arrivals", () => {
    expect(takeFirst(workload, 3).arrivals).toEqual(workload.arrivals.slice(0, 3));
    expect(takeFirst(workload, 1000)).toEqual(workload);
  });
});
