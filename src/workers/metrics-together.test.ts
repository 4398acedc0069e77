import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { parseSamples, sumOf } from "../../test/support/metric-samples.ts";
import type { MetricSnapshot } from "../gateway/index.ts";
import { createLog, monotonicClock, Reloader } from "../runtime/index.ts";
import { MetricsTogether } from "./metrics-together.ts";

const log = createLog({ level: "silent", format: "json" });

function together(): MetricsTogether {
  const reloader = new Reloader(undefined, () => ({ kind: "unchanged" }), { clock: monotonicClock, log });
  return new MetricsTogether({ reloader, serving: () => 2, deaths: () => 1 });
}

/** What one worker counts. */
class Counts {
  readonly #registry = new Registry();
  readonly requests = new Counter({ name: "requests", help: "h", labelNames: ["e"], registers: [this.#registry] });
  readonly seconds = new Histogram({ name: "seconds", help: "h", buckets: [1, 2], registers: [this.#registry] });
  readonly running = new Gauge({ name: "running", help: "h", registers: [this.#registry] });
  readonly up = new Gauge({ name: "up", help: "h", aggregator: "min", registers: [this.#registry] });

  /** As it comes from another process. */
  async snapshot(): Promise<readonly MetricSnapshot[]> {
    return structuredClone((await this.#registry.getMetricsAsJSON()) as unknown as readonly MetricSnapshot[]);
  }
}

async function read(
  metrics: MetricsTogether,
  ...workers: readonly Counts[]
): Promise<(name: string, labels?: Record<string, string>) => number> {
  const snapshots = await Promise.all(workers.map(async (worker) => [worker, await worker.snapshot()] as const));
  const { body } = await metrics.page(new Map(snapshots));
  const samples = parseSamples(body);
  return (name, labels) => sumOf(samples, name, labels);
}

describe("MetricsTogether", () => {
  it("adds up what is counted, and asks each gauge what it means", async () => {
    const [one, other] = [new Counts(), new Counts()];
    one.requests.inc({ e: "a" }, 3);
    other.requests.inc({ e: "a" }, 4);
    other.requests.inc({ e: "b" }, 5);
    one.seconds.observe(1.5);
    other.seconds.observe(0.5);
    one.running.set(2);
    other.running.set(1);
    one.up.set(1);
    const value = await read(together(), one, other);
    expect([value("requests", { e: "a" }), value("requests", { e: "b" })]).toEqual([7, 5]);
    expect([value("seconds_bucket", { le: "1" }), value("seconds_count"), value("seconds_sum")]).toEqual([1, 2, 2]);
    expect([value("running"), value("up")]).toEqual([3, 0]);
    expect([value("evenkeel_workers"), value("evenkeel_worker_deaths_total")]).toEqual([2, 1]);
    expect(value("evenkeel_config_last_reload_success")).toBe(1);
  });

  it("keeps in the sums what one that is gone had counted, and not what it had running", async () => {
    const metrics = together();
    const [one, other] = [new Counts(), new Counts()];
    one.requests.inc({ e: "a" }, 3);
    one.running.set(2);
    other.requests.inc({ e: "a" }, 4);
    await read(metrics, one, other);
    metrics.left(one);
    const another = new Counts();
    another.requests.inc({ e: "a" }, 1);
    let value = await read(metrics, other, another);
    expect([value("requests"), value("running")]).toEqual([8, 0]);
    metrics.left(another);
    value = await read(metrics, other);
    expect([value("requests"), value("seconds_count")]).toEqual([8, 0]);
  });

  it("counts one that does not answer as it was shown last, and one that is gone by then no more than once", async () => {
    const metrics = together();
    const [one, other] = [new Counts(), new Counts()];
    one.requests.inc({ e: "a" }, 3);
    await read(metrics, one, other);
    expect((await read(metrics, other))("requests")).toBe(3);
    metrics.left(one);
    expect((await read(metrics, one, other))("requests")).toBe(3);
  });
});
