import { type Dispatcher, Pool } from "undici";
import type { ServedPool } from "../runtime/index.ts";

/** The part of the configuration that shapes connections to endpoints. */
export interface UpstreamTimeouts {
  readonly connectMs: number | undefined;
  readonly upstreamKeepAliveMs: number;
}

/** Connections to one endpoint. */
export class Upstream {
  readonly #dispatcher: Pool;
  readonly #basePath: string;
  /** Undefined: the client's own credentials pass. */
  readonly apiKey: string | undefined;
  /** The endpoint answered 400 to a `stream_options` that the balancer had added: it is not added again. */
  refusesUsageOption = false;

  constructor(url: string, apiKey: string | undefined, timeouts: UpstreamTimeouts) {
    const { origin, pathname } = new URL(url);
    this.#basePath = pathname === "/" ? "" : pathname;
    this.apiKey = apiKey;
    this.#dispatcher = new Pool(origin, {
      // As many as the balancer sends: requests wait where they can be seen, not in here.
      connections: null,
      pipelining: 1,
      keepAliveTimeout: timeouts.upstreamKeepAliveMs,
      // An engine's own hint may shorten the idle time, never stretch it.
      keepAliveMaxTimeout: timeouts.upstreamKeepAliveMs,
      connectTimeout: timeouts.connectMs ?? 0,
      // The watchdog tells prefill, stall and slow client apart; these could not.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  send(
    request: { readonly method: Dispatcher.HttpMethod; readonly path: string; readonly headers: string[]; readonly body: Buffer | null },
    handler: Dispatcher.DispatchHandler,
  ): void {
    const { method, headers, body } = request;
    this.#dispatcher.dispatch({ method, path: this.#basePath + request.path, headers, body }, handler);
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }
}

/** The upstreams of all pools. */
export class Upstreams {
  readonly #byPool: ReadonlyMap<ServedPool, ReadonlyMap<string, Upstream>>;

  constructor(pools: readonly ServedPool[], timeouts: UpstreamTimeouts) {
    this.#byPool = new Map(
      pools.map((pool) => [
        pool,
        new Map(
          pool.config.endpoints.map(({ id, url, apiKey }) => [id, new Upstream(url, apiKey?.reveal(), timeouts)]),
        ),
      ]),
    );
  }

  /** @throws when there is none: ids come from the pool's own decisions. */
  get(pool: ServedPool, endpointId: string): Upstream {
    const upstream = this.#byPool.get(pool)?.get(endpointId);
    if (upstream === undefined) throw new RangeError(`no upstream for "${endpointId}" in pool "${pool.name}"`);
    return upstream;
  }

  async close(): Promise<void> {
    const all = [...this.#byPool.values()].flatMap((upstreams) => [...upstreams.values()]);
    await Promise.all(all.map((upstream) => upstream.close()));
  }
}
