import { describe, expect, it } from "vitest";
import { seededRandom } from "./random.ts";
import { ratiosOf, type Work, WorkFit, workMs } from "./work-fit.ts";

const MEDIAN = { quantile: 0.5, spreads: [1] };
const NOTHING = [0];

/** Work whose other part is up to as large as the main one. */
function work(share: number): Work {
  return { mainMs: 10, otherMs: [10 * share] };
}

/** `count` pieces of work on an engine that is `scale` slower, with the other part cheaper or dearer by `ratioLog`. */
function teach(fit: WorkFit, count: number, scale: number, ratioLog: number, means: readonly number[] = NOTHING): void {
  const random = seededRandom(2);
  for (let i = 0; i < count; i++) {
    const each = work(random.next());
    fit.observe(each, scale * msOf(each, [ratioLog]) * (0.95 + 0.1 * random.next()), 0.1, means);
  }
}

function msOf(each: Work, ratioLogs: readonly number[]): number {
  return workMs(each, ratiosOf(ratioLogs));
}

function scaleOf(fit: WorkFit, means: readonly number[] = NOTHING): number {
  return Math.exp(fit.scaleLog(ratiosOf(fit.ratioLogs(means))));
}

describe("WorkFit", () => {
  it("believes in the prior before any sample, or in others' ratios", () => {
    const fit = new WorkFit(MEDIAN);
    expect([fit.samples, fit.scaleLog([1]), fit.ownRatioLog(0), fit.knownOfRatio(0)]).toEqual([0, 0, 0, 0]);
    expect(fit.ratioLogs([-1.2])).toEqual([-1.2]);
  });

  it.each([
    [1, 0],
    [2.4, -1.2],
    [0.5, 0.9],
  ])("learns a scale of %d apart from a ratio of e^%d", (scale, ratioLog) => {
    const fit = new WorkFit(MEDIAN);
    teach(fit, 400, scale, ratioLog);
    expect(Math.abs((fit.ratioLogs(NOTHING)[0] as number) - ratioLog)).toBeLessThan(0.12);
    expect(Math.abs(Math.log(scaleOf(fit) / scale))).toBeLessThan(0.05);
  });

  it("believes the time of usual work that it saw, whatever it comes to believe of its parts", () => {
    const fit = new WorkFit(MEDIAN);
    for (let i = 0; i < 40; i++) fit.observe(work(0.8), 3 * msOf(work(0.8), [-1]), 0.1, NOTHING);
    for (const means of [[0], [-1], [1]]) {
      const believedMs = scaleOf(fit, means) * msOf(work(0.8), fit.ratioLogs(means));
      expect(believedMs).toBeCloseTo(3 * msOf(work(0.8), [-1]), 6);
    }
    expect(fit.ratioLogs(NOTHING)[0]).toBeCloseTo(0, 6);
  });

  it("lets what others know of the ratios give way to its own samples", () => {
    const fit = new WorkFit(MEDIAN);
    teach(fit, 400, 2, 0, [-1.2]);
    expect(Math.abs(fit.ratioLogs([-1.2])[0] as number)).toBeLessThan(0.15);
  });

  it("stays with a quantile well below the median where waits only ever add", () => {
    const fit = new WorkFit({ quantile: 0.25, spreads: [1] });
    const random = seededRandom(3);
    for (let i = 0; i < 600; i++) {
      const each = work(random.next());
      fit.observe(each, msOf(each, NOTHING) + (random.next() < 0.5 ? 20 * random.next() : 0), 0.15, NOTHING);
    }
    expect(Math.abs(Math.log(scaleOf(fit)))).toBeLessThan(0.1);
  });

  it("hears little from samples that are far less exact than usual ones", () => {
    const fit = new WorkFit(MEDIAN);
    teach(fit, 200, 1, 0);
    for (let i = 0; i < 10; i++) fit.observe(work(0.5), 1.15 * msOf(work(0.5), NOTHING), 2, NOTHING);
    expect(scaleOf(fit)).toBeLessThan(1.03);
  });

  it("knows another engine within some tens of samples, though it was sure of the last", () => {
    const fit = new WorkFit(MEDIAN);
    teach(fit, 500, 1, 0);
    teach(fit, 100, 2.4, -1.2);
    expect(fit.samples).toBeLessThan(100);
    expect(Math.abs(Math.log(scaleOf(fit) / 2.4))).toBeLessThan(0.15);
    expect(fit.ratioLogs(NOTHING)[0]).toBeLessThan(-0.7);
  });

  it("does not take some stalls for another engine", () => {
    const fit = new WorkFit(MEDIAN);
    teach(fit, 200, 1, 0);
    for (let i = 0; i < 15; i++) fit.observe(work(0.5), 4 * msOf(work(0.5), NOTHING), 0.1, NOTHING);
    teach(fit, 50, 1, 0);
    expect(fit.samples).toBe(265);
    expect(Math.abs(Math.log(scaleOf(fit)))).toBeLessThan(0.1);
  });
});
