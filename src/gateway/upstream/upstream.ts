import { isIP, type Socket } from "node:net";
import type { Dispatcher } from "undici";
import {
  type Clock,
  type Config,
  type EndpointConfig,
  HostAddresses,
  isSameValue,
  type Resolver,
} from "../../runtime/index.ts";
import { Connections, type UpstreamRequest } from "./connections.ts";
import { connector } from "./connector.ts";

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

  /** @returns whether the request goes out on a connection that had been used before. */
  send(request: UpstreamRequest, connection: "any" | "fresh", handler: Dispatcher.DispatchHandler): boolean {
    if (this.#surroundings.clock.nowMs() >= this.#replaceAtMs) this.#replace();
    this.#addresses?.keepFresh();
    return this.#connections.send(request, connection, handler);
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
    const { url } = this.#endpoint;
    const { connectMs, upstreamKeepAliveMs } = this.#surroundings.timeouts;
    const connect = connector(this.#endpoint, connectMs, this.#addresses);
    return new Connections({
      url,
      keepAliveMs: upstreamKeepAliveMs,
      connect: (target, callback) =>
        connect(target, (...result) => {
          const [error, socket] = result;
          if (error === null) this.#count(socket);
          callback(...result);
        }),
    });
  }

  #count(socket: Socket): void {
    this.#open++;
    socket.on("close", () => this.#open--);
  }
}

/** What its connections depend on. */
function connectedPart({ url, tls }: EndpointConfig): object {
  return { url, tls };
}
