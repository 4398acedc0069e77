import type { IncomingHttpHeaders } from "node:http";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { Gate, GatedController } from "./gate.ts";
import { SentOnce } from "./sent-once.ts";

/** A request as it goes to an endpoint. */
export interface UpstreamRequest {
  readonly method: Dispatcher.HttpMethod;
  /** With its query, without the endpoint's own path. */
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer;
}

/** Where connections lead, and how they are made and kept. */
export interface ConnectionSettings {
  /** The endpoint's; its path goes before that of each request. */
  readonly url: string;
  readonly keepAliveMs: number;
  readonly connect: buildConnector.connector;
}

/**
 * Connections of one endpoint that were made alike: as many as there are requests, since these wait where they can be
 * seen and not in here. The one that was used last is used first, so that those not needed any more run out.
 */
export class Connections implements Keeper {
  readonly #target: ConnectionTarget;
  /** Open and without a request, the one used last at the end. */
  readonly #free: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** Undefined: nobody waits for the last request. */
  #finishing: { readonly done: Promise<void>; resolve(): void } | undefined;

  constructor(settings: ConnectionSettings) {
    const { origin, pathname } = new URL(settings.url);
    this.#target = { ...settings, origin: new URL(origin), basePath: pathname === "/" ? "" : pathname };
  }

  /** @returns whether the request goes out on a connection that had been used before. */
  send(request: UpstreamRequest, connection: "any" | "fresh", handler: Dispatcher.DispatchHandler): boolean {
    const free = connection === "any" ? this.#free.pop() : undefined;
    (free ?? this.#open(connection === "any")).send(request, handler);
    return free !== undefined;
  }

  /** Resolves when what is under way is done; nothing more is sent. */
  finish(): Promise<void> {
    if (this.#finishing === undefined) {
      let resolve = (): void => {};
      const done = new Promise<void>((resolver) => {
        resolve = resolver;
      });
      this.#finishing = { done, resolve };
      for (const connection of this.#free.splice(0)) connection.close();
      this.#checkFinished();
    }
    return this.#finishing.done;
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#free.length = 0;
    await Promise.all([...this.#all].map((connection) => connection.destroy()));
  }

  #open(isKept: boolean): Connection {
    const connection = new Connection(this.#target, isKept, this);
    this.#all.add(connection);
    return connection;
  }

  freed(connection: Connection): void {
    if (this.#finishing === undefined) this.#free.push(connection);
    else connection.close();
  }

  closed(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#free.lastIndexOf(connection);
    if (at !== -1) this.#free.splice(at, 1);
    this.#checkFinished();
  }

  #checkFinished(): void {
    if (this.#all.size === 0) this.#finishing?.resolve();
  }
}

/** Settings with their URL taken apart, which all connections share. */
interface ConnectionTarget extends ConnectionSettings {
  readonly origin: URL;
  /** Empty: none. */
  readonly basePath: string;
}

/** Who keeps a connection. */
interface Keeper {
  /** It can carry another request. */
  freed(connection: Connection): void;
  /** It is gone, or never came to be. Called once. */
  closed(connection: Connection): void;
}

/** One connection, with one request at a time; it opens with the first. */
class Connection implements Dispatcher.DispatchHandler {
  readonly #client: Client;
  readonly #basePath: string;
  readonly #isKept: boolean;
  readonly #keeper: Keeper;
  /** Of the request that it carries; undefined: none. */
  #handler: Dispatcher.DispatchHandler | undefined;
  /** Undefined: not connected. */
  #gate: Gate | undefined;
  /** Of the request that it carries; undefined: none, or it has not gone out. */
  #controller: GatedController | undefined;
  /** The answer is over, and its handler is not told yet: it waits. */
  #isEnding = false;
  #isClosed = false;

  constructor({ origin, basePath, keepAliveMs, connect }: ConnectionTarget, isKept: boolean, keeper: Keeper) {
    this.#basePath = basePath;
    this.#isKept = isKept;
    this.#keeper = keeper;
    this.#client = new Client(origin, {
      connect: (target, callback) =>
        connect(target, (...result) => {
          const [error, socket] = result;
          if (error === null) this.#gate = new Gate(socket);
          callback(...result);
        }),
      // Without pipelining undici asks for the connection to be closed behind its answer.
      pipelining: isKept ? 1 : 0,
      keepAliveTimeout: keepAliveMs,
      // An engine's own hint may shorten the idle time, never stretch it.
      keepAliveMaxTimeout: keepAliveMs,
      // The watchdog tells prefill, stall and slow client apart; these could not.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.#client.on("disconnect", () => this.#disconnected());
  }

  send({ method, path, headers, body }: UpstreamRequest, handler: Dispatcher.DispatchHandler): void {
    this.#handler = handler;
    this.#client.dispatch({ method, path: this.#basePath + path, headers, body: SentOnce.orKept(body) }, this);
  }

  /** Closes it, which carries no request. */
  close(): void {
    void this.#client.close().finally(() => this.#closed());
  }

  async destroy(): Promise<void> {
    await this.#client.destroy();
    this.#closed();
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#controller = new GatedController(controller, this.#gate as Gate);
    this.#handler?.onRequestStart?.(this.#controller, context);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    reason?: string,
  ): void {
    // They are read, and undici would keep them, and the piece that they came in, as long as the answer lasts.
    controller.rawHeaders = null;
    this.#handler?.onResponseStart?.(this.#controller ?? controller, status, headers, reason);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#handler?.onResponseData?.(this.#controller ?? controller, chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    if (this.#controller?.paused === true) {
      // It came in the very piece that its handler was paused by.
      this.#isEnding = true;
      this.#controller.whenResumed(() => this.#end(controller, trailers));
    } else {
      this.#end(controller, trailers);
    }
  }

  #end(controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#isEnding = false;
    const handler = this.#over();
    // One that the endpoint is about to close is taken from the free ones again by that.
    if (this.#isKept && !this.#isClosed) this.#keeper.freed(this);
    handler?.onResponseEnd?.(controller, trailers);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    const handler = this.#over();
    // Whatever is left of it, nothing else is to go over it.
    void this.destroy();
    handler?.onResponseError?.(controller, error);
  }

  #over(): Dispatcher.DispatchHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    // Whatever became of the request, the gate is not to stay shut.
    this.#controller?.resume();
    this.#controller = undefined;
    return handler;
  }

  /** A request that came while the endpoint closed the connection behind the one before has undici open another. */
  #disconnected(): void {
    if (this.#handler === undefined || this.#isEnding) this.#closed();
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#keeper.closed(this);
  }
}
