import { isIP, type Socket } from "node:net";
import { Readable } from "node:stream";
import { buildConnector, type Dispatcher, Pool } from "undici";
import {
  type Clock,
  type Config,
  type EndpointConfig,
  HostAddresses,
  isSameValue,
  type Resolver,
} from "../runtime/index.ts";

/** A request as it goes to an endpoint. */
export interface UpstreamRequest {
  readonly method: Dispatcher.HttpMethod;
  /** With its query, without the endpoint's own path. */
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer;
}

/** What connections are made with, beside what their endpoint says. */
export interface UpstreamSurroundings {
  readonly timeouts: Pick<Config["timeouts"], "connectMs" | "upstreamKeepAliveMs">;
  readonly resolver: Resolver;
  readonly clock: Clock;
}

/**
 * After this connections are not used again: what stands behind an address, such as a cluster's load balancer, may have
 * another place for them by now.
 */
const MAX_CONNECTION_AGE_MS = 300_000;

/**
 * Connections to one endpoint. Other settings, another address of its name, or their age make new ones; those of before
 * carry what they carry to its end.
 */
export class Upstream {
  /** The endpoint refused a `stream_options` that the balancer had added: it is not added again. */
  refusesUsageOption = false;
  #endpoint: EndpointConfig;
  #surroundings: UpstreamSurroundings;
  /** Undefined: its host is an address itself. */
  #addresses: HostAddresses | undefined;
  #connections: Connections;
  #replaceAtMs: number;
  /** With what they had to end; gone when they have. */
  readonly #retired = new Set<Connections>();
  #opened = 0;
  #open = 0;

  constructor(endpoint: EndpointConfig, surroundings: UpstreamSurroundings) {
    this.#endpoint = endpoint;
    this.#surroundings = surroundings;
    this.#addresses = this.#addressesOf(endpoint);
    this.#connections = this.#connect();
    this.#replaceAtMs = surroundings.clock.nowMs() + MAX_CONNECTION_AGE_MS;
  }

  /** Undefined: the client's own credentials pass. */
  get apiKey(): string | undefined {
    return this.#endpoint.apiKey?.reveal();
  }

  /** Idle ones and those being closed included. */
  get openConnections(): number {
    return this.#open;
  }

  /** Other settings for the same endpoint; they count from the next request on. */
  reconfigure(endpoint: EndpointConfig, surroundings: UpstreamSurroundings): void {
    const before = [connectedPart(this.#endpoint), this.#surroundings.timeouts];
    const isSame = isSameValue(before, [connectedPart(endpoint), surroundings.timeouts]);
    const isElsewhere = endpoint.url !== this.#endpoint.url;
    this.#endpoint = endpoint;
    this.#surroundings = surroundings;
    if (isElsewhere) this.#addresses = this.#addressesOf(endpoint);
    if (!isSame) this.#replace();
  }

  /** @returns whether the request went out on a connection that had been used before. */
  send(request: UpstreamRequest, connection: "any" | "fresh", handler: Dispatcher.DispatchHandler): boolean {
    if (this.#surroundings.clock.nowMs() >= this.#replaceAtMs) this.#replace();
    const openedBefore = this.#opened;
    this.#addresses?.keepFresh();
    this.#connections.send(request, connection, handler);
    // A connection that is needed is opened within the call.
    return connection === "any" && this.#opened === openedBefore;
  }

  /** Resolves when what is under way is done; nothing more is sent. */
  async finish(): Promise<void> {
    this.#retire(this.#connections);
    await Promise.all([...this.#retired].map((connections) => connections.finish()));
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    await Promise.all([this.#connections, ...this.#retired].map((connections) => connections.close()));
  }

  #replace(): void {
    const before = this.#connections;
    this.#connections = this.#connect();
    this.#replaceAtMs = this.#surroundings.clock.nowMs() + MAX_CONNECTION_AGE_MS;
    this.#retire(before);
  }

  #retire(connections: Connections): void {
    this.#retired.add(connections);
    void connections.finish().finally(() => this.#retired.delete(connections));
  }

  #addressesOf({ url }: EndpointConfig): HostAddresses | undefined {
    const { hostname } = new URL(url);
    if (isIP(hostname.replace(/^\[|\]$/g, "")) !== 0) return undefined;
    const { resolver, clock } = this.#surroundings;
    const addresses = new HostAddresses(hostname, resolver, clock, () => {
      if (this.#addresses === addresses) this.#replace();
    });
    return addresses;
  }

  #connect(): Connections {
    const connect = connector(this.#endpoint, this.#surroundings.timeouts.connectMs, this.#addresses);
    return new Connections(this.#endpoint, this.#surroundings.timeouts.upstreamKeepAliveMs, (target, callback) => {
      this.#opened++;
      connect(target, (...result) => {
        const [error, socket] = result;
        if (error === null) this.#count(socket);
        callback(...result);
      });
    });
  }

  #count(socket: Socket): void {
    this.#open++;
    socket.once("close", () => this.#open--);
  }
}

/** Connections of one endpoint that were made alike. */
class Connections {
  readonly #kept: Pool;
  /** For requests that must not meet a connection the engine has just closed: each opens its own. */
  readonly #fresh: Pool;
  readonly #basePath: string;
  #finishing: Promise<void> | undefined;

  constructor({ url }: EndpointConfig, keepAliveMs: number, connect: buildConnector.connector) {
    const { origin, pathname } = new URL(url);
    this.#basePath = pathname === "/" ? "" : pathname;
    const options: Pool.Options = {
      // As many as the balancer sends: requests wait where they can be seen, not in here.
      connections: null,
      connect,
      keepAliveTimeout: keepAliveMs,
      // An engine's own hint may shorten the idle time, never stretch it.
      keepAliveMaxTimeout: keepAliveMs,
      // The watchdog tells prefill, stall and slow client apart; these could not.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    this.#kept = new Pool(origin, { ...options, pipelining: 1 });
    this.#fresh = new Pool(origin, { ...options, pipelining: 0 });
  }

  send(request: UpstreamRequest, connection: "any" | "fresh", handler: Dispatcher.DispatchHandler): void {
    const { method, headers, body } = request;
    const pool = connection === "any" ? this.#kept : this.#fresh;
    const path = this.#basePath + request.path;
    const outgoing = body.length <= MAX_KEPT_BYTES ? body : new SentOnce(body);
    pool.dispatch({ method, path, headers, body: outgoing }, handler);
  }

  finish(): Promise<void> {
    this.#finishing ??= Promise.all([this.#kept.close(), this.#fresh.close()]).then(() => {});
    return this.#finishing;
  }

  async close(): Promise<void> {
    await Promise.all([this.#kept.destroy(), this.#fresh.destroy()]);
  }
}

/**
 * undici keeps a body until the answer is over, which may be hours. Up to this size that is less than the connections of
 * client and endpoint take themselves, and bytes at hand are sent faster.
 */
const MAX_KEPT_BYTES = 16 * 1024;

/** A body that nobody keeps once it is sent. */
class SentOnce extends Readable {
  #body: Buffer | undefined;

  constructor(body: Buffer) {
    super();
    this.#body = body;
  }

  override _read(): void {
    const body = this.#body;
    this.#body = undefined;
    this.push(body);
    this.push(null);
  }
}

/** A connection that fails at the addresses known of a name is tried once more at those it has by now, if they are others. */
function connector(
  { tls }: EndpointConfig,
  connectMs: number | undefined,
  addresses: HostAddresses | undefined,
): buildConnector.connector {
  const connect = buildConnector({
    timeout: connectMs ?? 0,
    ...(addresses && { lookup: addresses.lookup }),
    ...(tls && {
      ca: tls.ca,
      cert: tls.cert,
      key: tls.key?.reveal(),
      rejectUnauthorized: tls.isVerified,
      ...(tls.serverName !== undefined && { servername: tls.serverName }),
    }),
  });
  if (addresses === undefined) return connect;
  return (target, callback) => {
    connect(target, (...result) => {
      const [error] = result;
      if (error === null) return callback(...result);
      void addresses.renew().then((isMoved) => (isMoved ? connect(target, callback) : callback(...result)));
    });
  };
}

/** What its connections depend on. */
function connectedPart({ url, tls }: EndpointConfig): object {
  return { url, tls };
}
