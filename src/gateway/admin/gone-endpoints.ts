import { Counter, Histogram, type Registry } from "prom-client";
import type { Runtime } from "../../runtime/index.ts";

interface Labels {
  readonly pool: string;
  readonly endpoint: string;
}

/** Several times the largest fleet: a rollout that replaces all of it, one after the other, loses nothing. */
const MAX_GONE = 256;

/**
 * Bounds the series that endpoints leave behind. Those of an endpoint that is gone stay, as sums over a counter must not
 * fall; only where addresses come and go without end are the oldest dropped.
 */
export class GoneEndpoints {
  readonly #registry: Registry;
  readonly #dropped: (pool: string, endpoint: string) => void;
  readonly #maxGone: number;
  #present: ReadonlyMap<string, Labels> = new Map();
  /** Those gone longest first. */
  readonly #gone = new Map<string, Labels>();

  /** @param dropped Is told of each endpoint whose series are dropped. */
  constructor(registry: Registry, dropped: (pool: string, endpoint: string) => void, maxGone: number = MAX_GONE) {
    this.#registry = registry;
    this.#dropped = dropped;
    this.#maxGone = maxGone;
  }

  follow(runtime: Runtime): void {
    this.#see(runtime);
    runtime.endpointsChanged.add(() => this.#see(runtime));
  }

  #see({ pools, leavingPools }: Runtime): void {
    const present = new Map<string, Labels>();
    for (const { name: pool, balancer, leaving } of [...pools, ...leavingPools]) {
      const ids = [
        ...balancer.members.map(({ endpoint }) => endpoint),
        ...leaving.map(({ monitor }) => monitor.endpoint),
      ];
      for (const { id: endpoint } of ids) present.set(JSON.stringify([pool, endpoint]), { pool, endpoint });
    }
    for (const [key, labels] of this.#present) if (!present.has(key)) this.#gone.set(key, labels);
    for (const key of present.keys()) this.#gone.delete(key);
    this.#present = present;
    for (const [key, labels] of this.#gone) {
      if (this.#gone.size <= this.#maxGone) break;
      this.#gone.delete(key);
      void this.#drop(labels);
    }
  }

  async #drop({ pool, endpoint }: Labels): Promise<void> {
    this.#dropped(pool, endpoint);
    for (const metric of this.#registry.getMetricsAsArray()) {
      if (!(metric instanceof Counter || metric instanceof Histogram)) continue;
      const { values } = await metric.get();
      const own = values.filter(({ labels }) => labels.pool === pool && labels.endpoint === endpoint);
      // A histogram's buckets have a label of their own, which is no part of the series' name.
      for (const { labels } of own) metric.remove(withoutBucket(labels));
    }
  }
}

function withoutBucket({
  le: _,
  ...labels
}: Readonly<Record<string, string | number | undefined>>): Record<string, string> {
  return labels as Record<string, string>;
}
