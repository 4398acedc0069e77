import { type MetricSample, parsePrometheusText } from "./prometheus-text.ts";

/** Which series of a metric count; absent: all. */
export type SeriesFilter = (labels: ReadonlyMap<string, string>) => boolean;

/**
 * The metrics of one scrape, by whole name. Every reader takes several candidate names, newest first, because engines
 * rename metrics; the first one that is there counts. A metric that is not there is undefined, never 0.
 */
export class MetricTable {
  readonly #series = new Map<string, MetricSample[]>();

  /** Keeps the samples whose name starts with `prefix`, except histogram buckets, which nothing here reads. */
  constructor(text: string, prefix: string) {
    const keep = (name: string): boolean => name.startsWith(prefix) && !name.endsWith("_bucket");
    for (const sample of parsePrometheusText(text, keep)) {
      // Everything read here counts something: a negative value is as good as none.
      if (sample.value < 0) continue;
      const series = this.#series.get(sample.name);
      if (series === undefined) this.#series.set(sample.name, [sample]);
      else series.push(sample);
    }
  }

  /** All series of the metric; empty: it is not there. */
  series(name: string): readonly MetricSample[] {
    return this.#series.get(name) ?? [];
  }

  /** Sum over the series: queues and counters of data-parallel ranks add up. */
  sum(names: readonly string[], keep?: SeriesFilter): number | undefined {
    return sumOf(this.#first(names, keep));
  }

  /** Largest value over the series. */
  largest(names: readonly string[], keep?: SeriesFilter): number | undefined {
    const series = this.#first(names, keep);
    return series.length === 0 ? undefined : series.reduce((largest, { value }) => Math.max(largest, value), 0);
  }

  /** Largest value, at most 1: of several KV caches the fullest one decides. */
  fullest(names: readonly string[], keep?: SeriesFilter): number | undefined {
    return shareOf(this.largest(names, keep), 1);
  }

  /** Sum over the groups of `label`, each counted by its largest series: ranks of one group report the same work. */
  sumPer(label: string, names: readonly string[], keep?: SeriesFilter): number | undefined {
    const largest = new Map<string, MetricSample>();
    for (const sample of this.#first(names, keep)) {
      const group = sample.labels.get(label) ?? "";
      const before = largest.get(group);
      if (before === undefined || sample.value > before.value) largest.set(group, sample);
    }
    return sumOf([...largest.values()]);
  }

  #first(names: readonly string[], keep: SeriesFilter = everySeries): readonly MetricSample[] {
    for (const name of names) {
      const series = this.series(name).filter(({ labels }) => keep(labels));
      if (series.length > 0) return series;
    }
    return [];
  }
}

const everySeries: SeriesFilter = () => true;

function sumOf(samples: readonly MetricSample[]): number | undefined {
  return samples.length === 0 ? undefined : finite(samples.reduce((total, { value }) => total + value, 0));
}

/** A count written as a label; undefined: absent, or not a whole positive number. */
export function countLabel(labels: ReadonlyMap<string, string>, name: string): number | undefined {
  const text = labels.get(name);
  return text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** `base` and, where it is known, `extra`; undefined while `base` is. */
export function withExtra(base: number | undefined, extra: number | undefined): number | undefined {
  return base === undefined ? undefined : finite(base + (extra ?? 0));
}

/** Product of two values of which both are known. */
export function times(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : finite(a * b);
}

/** `part` of `whole`, at most 1; undefined: one is unknown, or there is no whole. */
export function shareOf(part: number | undefined, whole: number | undefined): number | undefined {
  if (part === undefined || whole === undefined || whole === 0) return undefined;
  return Math.min(1, part / whole);
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}
