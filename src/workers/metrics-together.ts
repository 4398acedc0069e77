import { AggregatorRegistry, Counter, Gauge, type PrometheusContentType, Registry } from "prom-client";
import { type AdminAnswer, type MetricSnapshot, registerReloadMetrics } from "../gateway/index.ts";
import type { Reloader } from "../runtime/index.ts";

/** A worker as far as its metrics are concerned. */
type Source = object;

/** What the primary itself knows. */
export interface PrimaryFacts {
  readonly reloader: Reloader;
  /** Workers that serve now. */
  readonly serving: () => number;
  /** Workers that died. */
  readonly deaths: () => number;
}

/**
 * One page of the metrics of all workers. What a worker had counted when it was last shown stays in the sums after its
 * death, so that they never fall; what it counted since is lost with it.
 */
export class MetricsTogether {
  readonly registry: Registry = new Registry();
  readonly #shown = new Map<Source, readonly MetricSnapshot[]>();
  readonly #left = new WeakSet<Source>();
  /** Of workers that are gone, added up. */
  #gone: readonly object[] = [];
  /** Resolves when those that left are. */
  #folded: Promise<void> = Promise.resolve();

  constructor({ reloader, serving, deaths }: PrimaryFacts) {
    const registers = [this.registry];
    registerReloadMetrics(this.registry, { reloader });
    new Gauge({
      name: "evenkeel_workers",
      help: "Worker processes that serve.",
      registers,
      collect() {
        this.set(serving());
      },
    });
    new Counter({
      name: "evenkeel_worker_deaths_total",
      help: "Worker processes that died and were replaced.",
      registers,
      collect() {
        this.reset();
        this.inc(deaths());
      },
    });
  }

  /** @param snapshots What each worker says now; who says nothing counts as it was shown last. */
  async page(snapshots: ReadonlyMap<Source, readonly MetricSnapshot[]>): Promise<AdminAnswer> {
    const own = await this.registry.getMetricsAsJSON();
    await this.#folded;
    for (const [source, snapshot] of snapshots) if (!this.#left.has(source)) this.#shown.set(source, snapshot);
    // The primary's come first: where one of them all is right, it is the first.
    const all = sumsOf([own, this.#gone, ...this.#shown.values()]);
    return { status: 200, type: all.contentType, body: await all.metrics() };
  }

  /** The worker is gone. */
  left(source: Source): void {
    this.#left.add(source);
    this.#folded = this.#folded.then(() => this.#fold(source));
  }

  async #fold(source: Source): Promise<void> {
    const last = this.#shown.get(source) ?? [];
    this.#shown.delete(source);
    const counted = last.filter(({ type }) => type === "counter" || type === "histogram");
    this.#gone = await sumsOf([this.#gone, counted]).getMetricsAsJSON();
  }
}

function sumsOf(snapshots: readonly (readonly object[])[]): Registry<PrometheusContentType> {
  return AggregatorRegistry.aggregate([...snapshots] as object[]);
}
