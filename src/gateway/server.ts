import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Config, type ListenAddress, Runtime, type RuntimeParts } from "../runtime/index.ts";
import { createAdminServer } from "./admin.ts";
import { errorBody } from "./error-answer.ts";
import type { ErrorCode, ErrorDetails } from "./errors.ts";
import { Exchange } from "./exchange.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { requestIdOf } from "./headers.ts";
import { GatewayMetrics } from "./metrics.ts";
import { modelByName, modelList } from "./models.ts";
import { findRoute, PASSTHROUGH, type Route } from "./routes.ts";
import { createSessionKeyReader, DEFAULT_SESSION_KEY_SOURCES } from "./session-key.ts";
import { Upstreams } from "./upstream.ts";
import { Watchdog } from "./watchdog.ts";

/** A balancer that serves. */
export interface RunningServer {
  /** Where clients connect, with the port that was really taken. */
  readonly listenUrl: string;
  /** Undefined: the admin listener is off. */
  readonly adminUrl: string | undefined;
  readonly runtime: Runtime;
  /** Stops accepting, lets running requests finish within the drain limit, then ends everything. May be called twice. */
  close(): Promise<void>;
}

/** Starts a balancer as configured. @throws when an address cannot be listened on. */
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
  #isDraining = false;
  #closing: Promise<void> | undefined;

  constructor(parts: GatewayParts) {
    const { limits, timeouts, admin, passthrough } = parts.runtime.config;
    this.#parts = parts;
    this.#passthrough = new Set(passthrough);
    this.#admin = admin === undefined ? undefined : createAdminServer(parts);
    this.#server = createServer(
      {
        maxHeaderSize: limits.headerBytes,
        noDelay: true,
        keepAliveTimeout: timeouts.keepAliveMs ?? 0,
        // A client that is slow with its head or its body holds a socket: Node's own limits end that.
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: BODY_TIMEOUT_MS,
      },
      (request, response) => this.#dispatch(request, response),
    );
  }

  async start(): Promise<RunningServer> {
    const { runtime } = this.#parts;
    const { listen, admin } = runtime.config;
    const listenUrl = await listenOn(this.#server, listen);
    try {
      const adminUrl = this.#admin === undefined || admin === undefined ? undefined : await listenOn(this.#admin, admin);
      runtime.start();
      return { listenUrl, adminUrl, runtime, close: () => this.close() };
    } catch (error) {
      this.#server.close();
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  #dispatch(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? "/";
    const queryAt = url.indexOf("?");
    const path = queryAt === -1 ? url : url.slice(0, queryAt);
    const route = findRoute(path) ?? (this.#passthrough.has(path) ? PASSTHROUGH : undefined);
    if (this.#isDraining) return this.#refuse(request, response, route, "shutting_down", { retryAfterMs: 1000 });
    if (route === undefined) return this.#answerLocally(request, response, path);
    if (route !== PASSTHROUGH && request.method !== "POST") {
      return this.#refuse(request, response, route, "method_not_allowed", { path, allowedMethods: ["POST"] });
    }
    void new Exchange(this.#parts, route, request, response).run();
  }

  #answerLocally(request: IncomingMessage, response: ServerResponse, path: string): void {
    const { runtime } = this.#parts;
    if (path !== MODELS_PATH && !path.startsWith(`${MODELS_PATH}/`)) {
      return this.#refuse(request, response, undefined, "route_not_found", { method: request.method ?? "", path });
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      return this.#refuse(request, response, undefined, "method_not_allowed", { path, allowedMethods: ["GET"] });
    }
    const list = modelList(runtime);
    if (list === undefined) {
      return this.#refuse(request, response, undefined, "no_available_endpoint", { cause: "No endpoint has told its models yet." });
    }
    const name = path === MODELS_PATH ? undefined : decodeName(path.slice(MODELS_PATH.length + 1));
    const found = name === undefined ? list : modelByName(runtime, name);
    if (found === undefined) {
      return this.#refuse(request, response, undefined, "model_not_found", { model: name, knownModels: runtime.directory.names });
    }
    const body = Buffer.from(JSON.stringify(found));
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
    response.end(body);
  }

  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    route: Route | undefined,
    code: ErrorCode,
    details: ErrorDetails,
  ): void {
    const requestId = requestIdOf(request.headers);
    const { status, headers, body } = errorBody(route?.dialect, code, { ...details, requestId });
    response.writeHead(status, { ...headers, "x-request-id": requestId });
    response.end(body);
    // What is left of the body is read away, so that the connection can carry the next request.
    request.resume();
  }

  async #drain(): Promise<void> {
    const { runtime, upstreams, watchdog } = this.#parts;
    this.#isDraining = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const limit = runtime.config.timeouts.drainMs;
    const cut = limit === undefined ? undefined : setTimeout(() => this.#server.closeAllConnections(), limit);
    await closed;
    clearTimeout(cut);
    this.#admin?.closeAllConnections();
    await new Promise<void>((resolve) => (this.#admin === undefined ? resolve() : this.#admin.close(() => resolve())));
    watchdog.close();
    await upstreams.close();
    await runtime.close();
  }
}

const MODELS_PATH = "/v1/models";

const HEADERS_TIMEOUT_MS = 60_000;
const BODY_TIMEOUT_MS = 300_000;

/** A name that is not valid percent-encoding is taken as it stands: no such model exists. */
function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
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
