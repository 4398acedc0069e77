import { buildConnector, type Dispatcher, Pool } from "undici";
import type { ServedPool } from "../runtime/index.ts";

/** The part of the configuration that shapes connections to endpoints. */
export interface UpstreamTimeouts {
  readonly connectMs: number | undefined;
  readonly upstreamKeepAliveMs: number;
}

/** A request as it goes to an endpoint. */
export interface UpstreamRequest {
  readonly method: Dispatcher.HttpMethod;
  /** With its query, without the endpoint's own path. */
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer;
}

/** Connections to one endpoint. */
export class Upstream {
  readonly #kept: Pool;
  /** For requests that must not meet a connection the engine has just closed: each opens its own. */
  readonly #fresh: Pool;
  readonly #basePath: string;
  /** Undefined: the client's own credentials pass. */
  readonly apiKey: string | undefined;
  /** The endpoint refused a `stream_options` that the balancer had added: it is not added again. */
  refusesUsageOption = false;
  #opened = 0;

  constructor(url: string, apiKey: string | undefined, timeouts: UpstreamTimeouts) {
    const { origin, pathname } = new URL(url);
    this.#basePath = pathname === "/" ? "" : pathname;
    this.apiKey = apiKey;
    const connect = buildConnector({ timeout: timeouts.connectMs ?? 0 });
    const options: Pool.Options = {
      // As many as the balancer sends: requests wait where they can be seen, not in here.
      connections: null,
      connect: (target, callback) => {
        this.#opened++;
        connect(target, callback);
      },
      keepAliveTimeout: timeouts.upstreamKeepAliveMs,
      // An engine's own hint may shorten the idle time, never stretch it.
      keepAliveMaxTimeout: timeouts.upstreamKeepAliveMs,
      // The watchdog tells prefill, stall and slow client apart; these could not.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    this.#kept = new Pool(origin, { ...options, pipelining: 1 });
    this.#fresh = new Pool(origin, { ...options, pipelining: 0 });
  }

  /** @returns whether the request went out on a connection that had been used before. */
  send(request: UpstreamRequest, connection: "any" | "fresh", handler: Dispatcher.DispatchHandler): boolean {
    const { method, headers, body } = request;
    const openedBefore = this.#opened;
    const pool = connection === "any" ? this.#kept : this.#fresh;
    pool.dispatch({ method, path: this.#basePath + request.path, headers, body }, handler);
    // A connection that is needed is opened within the call.
    return connection === "any" && this.#opened === openedBefore;
  }

  async close(): Promise<void> {
    await Promise.all([this.#kept.destroy(), this.#fresh.destroy()]);
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
