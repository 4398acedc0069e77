import type { Runtime, ServedPool } from "../../runtime/index.ts";
import { Upstream, type UpstreamSurroundings } from "./upstream.ts";

/** The upstreams of all pools, each made when it is first needed and closed once its endpoint is gone and idle. */
export class Upstreams {
  readonly #runtime: Runtime;
  readonly #byPool = new Map<ServedPool, Map<string, Upstream>>();
  /** Of endpoints that are gone, until their connections are closed. */
  readonly #leaving = new Set<Upstream>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    runtime.endpointsChanged.add(() => this.#follow());
  }

  /** @throws when there is no such endpoint: ids come from the pool's own decisions. */
  get(pool: ServedPool, endpointId: string): Upstream {
    return this.#find(pool, endpointId) ?? this.#create(pool, endpointId);
  }

  /** Open now, idle ones included. */
  openConnections(pool: ServedPool, endpointId: string): number {
    return this.#find(pool, endpointId)?.openConnections ?? 0;
  }

  async close(): Promise<void> {
    const all = [...this.#byPool.values()].flatMap((upstreams) => [...upstreams.values()]);
    await Promise.all([...all, ...this.#leaving].map((upstream) => upstream.close()));
  }

  #find(pool: ServedPool, endpointId: string): Upstream | undefined {
    return this.#byPool.get(pool)?.get(endpointId);
  }

  #create(pool: ServedPool, endpointId: string): Upstream {
    const upstream = new Upstream(pool.endpoint(endpointId), this.#surroundings);
    const upstreams = this.#byPool.get(pool) ?? new Map<string, Upstream>();
    this.#byPool.set(pool, upstreams.set(endpointId, upstream));
    return upstream;
  }

  get #surroundings(): UpstreamSurroundings {
    const { config, resolver, clock } = this.#runtime;
    return { timeouts: config.timeouts, resolver, clock };
  }

  #follow(): void {
    const pools = new Set([...this.#runtime.pools, ...this.#runtime.leavingPools]);
    for (const [pool, upstreams] of this.#byPool) {
      for (const [id, upstream] of upstreams) {
        const endpoint = pools.has(pool) ? pool.find(id) : undefined;
        if (endpoint !== undefined) upstream.reconfigure(endpoint, this.#surroundings);
        else this.#letGo(upstreams, id, upstream);
      }
      if (!pools.has(pool)) this.#byPool.delete(pool);
    }
  }

  #letGo(upstreams: Map<string, Upstream>, id: string, upstream: Upstream): void {
    upstreams.delete(id);
    this.#leaving.add(upstream);
    void upstream.finish().finally(() => this.#leaving.delete(upstream));
  }
}
