import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type Config, type ListenAddress, Runtime, type RuntimeParts } from "../runtime/index.ts";
import { createAdminServer } from "./admin/admin.ts";
import { GatewayMetrics } from "./admin/metrics.ts";
import type { ErrorCode, ErrorDetails } from "./client/errors.ts";
import { LocalAnswers, OTHER_ROUTE } from "./client/local-answers.ts";
import { Exchange } from "./exchange.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { createSessionKeyReader, DEFAULT_SESSION_KEY_SOURCES } from "./request/session-key.ts";
import { findRoute, PASSTHROUGH } from "./routes.ts";
import { Upstreams } from "./upstream.ts";
import { Watchdog } from "./watchdog.ts";

/** A balancer that serves. */
export interface RunningServer {
  /** Where clients connect, with the port that was really taken. */
  readonly listenUrl: string;
  /** Undefined: the admin listener is off. */
  readonly adminUrl: string | undefined;
  readonly runtime: Runtime;
  /**
   * Says that it is leaving, soon after stops accepting, lets running requests finish within the drain limit, then ends
   * everything. May be called twice.
   */
  close(): Promise<void>;
}

/** Starts a balancer as configured. @throws when an address cannot be listened on or the file to record to not be written. */
export async function startServer(config: Config, runtimeParts: RuntimeParts = {}): Promise<RunningServer> {
  const runtime = new Runtime(config, runtimeParts);
  const parts: GatewayParts = {
    runtime,
    upstreams: new Upstreams(runtime.pools, config.timeouts),
    watchdog: new Watchdog(runtime.clock),
    sessionKeys: createSessionKeyReader(config.sessionKey ?? DEFAULT_SESSION_KEY_SOURCES),
    metrics: new GatewayMetrics(runtime),
  };
  const gateway = new Gateway(parts);
  return gateway.start();
}

class Gateway {
  readonly #parts: GatewayParts;
  readonly #server: Server;
  readonly #admin: Server | undefined;
  readonly #passthrough: ReadonlySet<string>;
  readonly #local: LocalAnswers;
  /** The answer that a connection has to finish before the next. */
  readonly #lastAnswer = new WeakMap<Socket, ServerResponse>();
  readonly #connections = new Set<Socket>();
  /** New requests are refused. */
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(parts: GatewayParts) {
    const { limits, timeouts, admin, passthrough } = parts.runtime.config;
    this.#parts = parts;
    this.#passthrough = new Set(passthrough);
    this.#local = new LocalAnswers(parts);
    this.#admin = admin === undefined ? undefined : createAdminServer(parts);
    this.#server = createServer({
      maxHeaderSize: limits.headerBytes,
      noDelay: true,
      keepAliveTimeout: timeouts.keepAliveMs ?? 0,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
    });
    // A client may close its sending side behind its request and read on; Node drops it unless told otherwise.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on("connection", (socket: Socket) => {
      this.#connections.add(socket);
      socket.once("close", () => this.#connections.delete(socket));
    });
    const inTurn = (request: IncomingMessage, response: ServerResponse): void => this.#inTurn(request, response);
    // Without a listener Node invites the body of an `Expect: 100-continue` before anybody has looked at the head.
    this.#server.on("request", inTurn).on("checkContinue", inTurn);
    this.#server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) =>
      this.#refuse(request, response, "expectation_failed"),
    );
  }

  async start(): Promise<RunningServer> {
    const { runtime } = this.#parts;
    const { listen, admin } = runtime.config;
    const listenUrl = await listenOn(this.#server, listen);
    try {
      const adminUrl =
        this.#admin === undefined || admin === undefined ? undefined : await listenOn(this.#admin, admin);
      runtime.start();
      return { listenUrl, adminUrl, runtime, close: () => this.close() };
    } catch (error) {
      this.#server.close();
      this.#admin?.close();
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  /** Takes the requests of one connection one after the other, also those of a client that does not wait. */
  #inTurn(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const before = response.socket === null ? this.#lastAnswer.get(socket) : undefined;
    this.#lastAnswer.set(socket, response);
    if (before === undefined) this.#dispatch(request, response);
    else before.once("close", () => socket.destroyed || this.#dispatch(request, response));
  }

  #dispatch(request: IncomingMessage, response: ServerResponse): void {
    request.url = originForm(request.url ?? "/");
    const [path = "/"] = request.url.split("?", 1);
    const route = findRoute(path) ?? (this.#passthrough.has(path) ? PASSTHROUGH : undefined);
    if (this.#isClosed) {
      this.#local.refuse(request, response, route ?? OTHER_ROUTE, "shutting_down", { retryAfterMs: RESTART_MS });
    } else if (route === undefined) {
      if (LocalAnswers.serves(path)) this.#local.models(request, response, path);
      else this.#refuse(request, response, "route_not_found", { method: request.method ?? "", path });
    } else if (route !== PASSTHROUGH && request.method !== "POST") {
      this.#local.refuse(request, response, route, "method_not_allowed", { path, allowedMethods: ["POST"] });
    } else {
      void new Exchange(this.#parts, route, request, response).run();
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, code: ErrorCode, details: ErrorDetails = {}): void {
    this.#local.refuse(request, response, OTHER_ROUTE, code, details);
  }

  async #drain(): Promise<void> {
    const { runtime, upstreams, watchdog } = this.#parts;
    const limit = runtime.config.timeouts.drainMs;
    const lameMs = Math.min(LAME_DUCK_MS, (limit ?? Number.POSITIVE_INFINITY) * LAME_DUCK_SHARE);
    runtime.drain();
    await new Promise((resolve) => setTimeout(resolve, lameMs));
    this.#isClosed = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    // Clients and proxies open connections in advance; one that has carried nothing yet Node takes for busy.
    for (const socket of this.#connections) if (socket.bytesRead === 0) socket.destroy();
    // Connections whose answer began before now may be kept alive behind it.
    const idle = setInterval(() => this.#server.closeIdleConnections(), IDLE_SWEEP_MS);
    const cut = limit === undefined ? undefined : setTimeout(() => this.#server.closeAllConnections(), limit - lameMs);
    await closed;
    clearInterval(idle);
    clearTimeout(cut);
    await closeNow(this.#admin);
    watchdog.close();
    await upstreams.close();
    await runtime.close();
  }
}

/** What clients are told to wait when this process ends: another one is up by then, or the same again. */
const RESTART_MS = 1_000;
const IDLE_SWEEP_MS = 50;
/**
 * Between the word that this process is leaving and the end of its listener: whoever sends here goes on for as long as
 * that word takes to reach it, and would find the port closed.
 */
const LAME_DUCK_MS = 1_000;
/** The most of the drain limit that may go into it. */
const LAME_DUCK_SHARE = 0.1;
const HEADERS_TIMEOUT_MS = 60_000;
/** For bodies that nobody reads; those that are wanted have their own, shorter limit. */
const REQUEST_TIMEOUT_MS = 360_000;

/** The target without scheme and host, which only proxies are sent (RFC 9112, 3.2.2). */
function originForm(target: string): string {
  if (target.startsWith("/")) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, "");
  return rest.startsWith("/") || rest === target ? rest : `/${rest}`;
}

function listenOn(server: Server, { host, port }: ListenAddress): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      const bound = server.address() as AddressInfo;
      resolve(`http://${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`);
    });
  });
}

/** Cuts what is open: for a listener whose answers are all short. */
async function closeNow(server: Server | undefined): Promise<void> {
  if (server === undefined) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
