import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Config, ListenAddress } from "../runtime/index.ts";
import { AnswerOrder } from "./answer-order.ts";
import type { ErrorCode, ErrorDetails } from "./client/errors.ts";
import { refuseSocket } from "./client/socket-refusal.ts";
import { ClientConnections } from "./client-connections.ts";
import { PARSING, timersOf, tlsOptions } from "./listener-options.ts";
import { MALFORMED_BODY } from "./request/receive-body.ts";
import { type HeadProblem, headProblem } from "./strict-head.ts";

/** What a listener hands on. */
export interface ListenerEvents {
  /** A request that is well formed, and whose turn it is on its connection. */
  request(request: IncomingMessage, response: ServerResponse): void;
  /** One that is not taken; it waits for its answer. */
  refused(request: IncomingMessage, response: ServerResponse, code: ErrorCode, details: ErrorDetails): void;
  /** What never became a request was answered, or its connection closed. */
  rejected(code: ErrorCode): void;
  /** A client and this server did not agree on TLS. @param reason An error code, never a text. */
  handshakeFailed(reason: string): void;
}

/**
 * The clients' side: takes connections, as many as it may, and from each one request after the other. Refuses what
 * could be read in two ways, and who takes too long to say what is wanted.
 */
export class Listener {
  readonly #server: Server;
  readonly #events: ListenerEvents;
  readonly #connections: ClientConnections;
  readonly #maxHeadBytes: number;
  readonly #order = new AnswerOrder();
  /** Connections that were told that they cannot be understood. */
  readonly #failed = new WeakSet<Duplex>();

  constructor(config: Config, events: ListenerEvents) {
    const { limits, tls } = config;
    this.#events = events;
    this.#connections = new ClientConnections(limits.connections);
    this.#maxHeadBytes = limits.headerBytes;
    const options = { ...PARSING, ...timersOf(config), maxHeaderSize: limits.headerBytes, noDelay: true };
    this.#server = tls === undefined ? createServer(options) : createTlsServer({ ...options, ...tlsOptions(tls) });
    // Node would leave out what is beyond, unseen; they are counted with the rest of the head.
    this.#server.maxHeadersCount = 0;
    // A client may close its sending side behind its request and read on; Node drops it unless told otherwise.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#listenToConnections();
    this.#listenToRequests();
  }

  /** @returns where clients connect, with the port that was really taken. @throws when it cannot be listened on. */
  async listen(address: ListenAddress): Promise<string> {
    const scheme = this.#server instanceof TlsServer ? "https" : "http";
    return `${scheme}://${await listenOn(this.#server, address)}`;
  }

  /** Takes on limits, timers and certificate of another configuration. Connections that are open stay. */
  configure(config: Config): void {
    this.#connections.limit = config.limits.connections;
    Object.assign(this.#server, timersOf(config));
    if (this.#server instanceof TlsServer && config.tls !== undefined) {
      this.#server.setSecureContext(tlsOptions(config.tls));
    }
  }

  /** Takes no more connections, and resolves when the last one is closed. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    // One that has carried nothing yet Node takes for busy.
    this.#connections.closeUnused();
    // Connections whose answer began before now may be kept alive behind it.
    const idle = setInterval(() => this.#server.closeIdleConnections(), IDLE_SWEEP_MS);
    await closed;
    clearInterval(idle);
  }

  /** Cuts every connection. */
  cut(): void {
    this.#connections.cut();
  }

  #listenToConnections(): void {
    this.#server.on("connection", (socket: Socket) => {
      if (!this.#connections.opened(socket)) this.#events.rejected("too_many_connections");
    });
    const isReady = this.#server instanceof TlsServer ? "secureConnection" : "connection";
    this.#server.on(isReady, (socket: Socket) => this.#connections.ready(socket));
  }

  #listenToRequests(): void {
    const inTurn = (request: IncomingMessage, response: ServerResponse): void =>
      this.#order.inTurn(request, response, () => this.#dispatch(request, response));
    // Without a listener Node invites the body of an `Expect: 100-continue` before anybody has looked at the head.
    this.#server.on("request", inTurn).on("checkContinue", inTurn);
    this.#server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) =>
      this.#events.refused(request, response, "expectation_failed", {}),
    );
    // Left alone, Node would close the connection without a word.
    this.#server.on("connect", (_request, socket: Duplex) => {
      // Node has let go of it, while requests before this one may still be answered on it.
      socket.on("error", () => {});
      this.#reject(socket, "method_not_allowed", { path: "This server", allowedMethods: ["GET", "HEAD", "POST"] });
    });
    this.#server.on("tlsClientError", ({ code }: NodeJS.ErrnoException) =>
      this.#events.handshakeFailed(code ?? "unknown"),
    );
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => this.#clientError(error, socket));
  }

  #dispatch(request: IncomingMessage, response: ServerResponse): void {
    const problem = this.#isCut(request) ? CUT_BODY : headProblem(request);
    if (problem !== undefined) this.#events.refused(request, response, problem.code, problem.details);
    else if (this.#connections.isCrowded(request.socket)) {
      this.#events.refused(request, response, "too_many_connections", { retryAfterMs: CROWDED_RETRY_MS });
    } else this.#events.request(request, response);
  }

  /** Its body was found unreadable while it waited for its turn. */
  #isCut({ socket, complete }: IncomingMessage): boolean {
    return !complete && this.#failed.has(socket);
  }

  /** The parser gave a connection up, or it broke. Nothing on it can be understood any more. */
  #clientError({ code = "" }: NodeJS.ErrnoException, socket: Duplex): void {
    const last = this.#order.last(socket);
    const reason = reasonOf(code);
    if (reason === undefined) socket.destroy();
    else if (last?.req.complete !== false) this.#headFailed(reason, socket);
    else if (code !== TIMED_OUT) this.#bodyFailed(code, socket, last);
    // A body that is wanted has its own limit.
    else if (last.closed) socket.destroy();
  }

  #headFailed(reason: ErrorCode, socket: Duplex): void {
    if (this.#failed.has(socket)) return;
    this.#failed.add(socket);
    this.#reject(socket, reason, this.#detailsOf(reason));
  }

  #bodyFailed(code: string, socket: Duplex, last: ServerResponse): void {
    if (this.#failed.has(socket)) return;
    this.#failed.add(socket);
    const isWaiting = last.socket === null && !last.closed;
    if (isWaiting) return;
    if (last.closed) socket.destroy();
    // Nobody reads the body of a request that was answered: its connection is of no further use.
    else if (last.headersSent) last.once("close", () => socket.destroy());
    else if (code === CLIENT_ENDED) refuseSocket(socket, CUT_BODY.code, CUT_BODY.details);
    else last.req.emit(MALFORMED_BODY);
  }

  #detailsOf(reason: ErrorCode): ErrorDetails {
    if (reason === "request_timeout") return { cause: "The head did not arrive in time." };
    return reason === "head_too_large" ? { limitBytes: this.#maxHeadBytes } : {};
  }

  /** Behind the answers that the connection is still to carry, lest this one is taken for one of them. */
  #reject(socket: Duplex, code: ErrorCode, details: ErrorDetails): void {
    this.#order.afterAll(socket, () => {
      if (!socket.writable) return;
      refuseSocket(socket, code, details);
      this.#events.rejected(code);
    });
  }
}

const CUT_BODY: HeadProblem = { code: "malformed_request", details: { cause: "The body is not whole." } };

/** When a client that was one too many may try again. */
const CROWDED_RETRY_MS = 1_000;
const IDLE_SWEEP_MS = 50;

const TIMED_OUT = "ERR_HTTP_REQUEST_TIMEOUT";
const CLIENT_ENDED = "HPE_INVALID_EOF_STATE";

/** What to tell the client; undefined: its connection is gone, or it does not speak HTTP on it. */
function reasonOf(code: string): ErrorCode | undefined {
  if (code === TIMED_OUT) return "request_timeout";
  if (code === "HPE_HEADER_OVERFLOW") return "head_too_large";
  return code.startsWith("HPE_") ? "malformed_request" : undefined;
}

/** @returns host and port as in a URL. */
export function listenOn(server: Server, { host, port }: ListenAddress): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      const bound = server.address() as AddressInfo;
      resolve(`${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`);
    });
  });
}

/** Cuts what is open: for a listener whose answers are all short. */
export async function closeNow(server: Server | undefined): Promise<void> {
  if (server === undefined) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
