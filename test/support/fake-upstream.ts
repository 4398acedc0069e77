import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer, type ServerOptions as TlsOptions } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { onTestFinished } from "vitest";
import { until } from "./until.ts";

/** A request as the fake received it, its body whole, and the means to answer it by hand. */
interface Call {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** The balancer closed the connection before the answer was complete. */
  readonly isAborted: boolean;
}

/** How the fake answers a request. */
export type Behaviour = (call: Call) => void;

export interface FakeUpstream {
  readonly url: string;
  /** Requests other than probes, in order of arrival. */
  readonly calls: readonly Call[];
  /** Paths of the probes so far: every GET of a path that no test asks for. */
  readonly probes: readonly string[];
  /** Connections that are open now. */
  readonly openSockets: number;
  /** Listed by `/v1/models`; undefined: no such path. */
  models: readonly string[] | undefined;
  /** Answers probes in place of the fake itself; undefined: it lists its models and is well. */
  onProbe: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** From now on, requests are answered so; those given beforehand as `next` come first. */
  behave(behaviour: Behaviour): void;
  /** Each for one request. */
  next(...behaviours: Behaviour[]): void;
  /** The call with this index, once it has arrived. */
  call(index: number): Promise<Call>;
  /** Refuses connections from now on and keeps those it has, as a process that was told to end does. */
  stopListening(): void;
  /** Stops listening and cuts all connections, as a killed process does. */
  kill(): Promise<void>;
}

export interface FakeOptions {
  readonly models?: readonly string[] | undefined;
  /** 0: any free port. */
  readonly port?: number;
  /** Loopback address to listen on; 127.0.0.1 unless given. */
  readonly host?: string;
  /** How long an idle connection is kept; the default outlives every test. */
  readonly keepAliveMs?: number;
  /** Absent: it is spoken to without TLS. */
  readonly tls?: TlsOptions;
}

/** A scriptable engine on a loopback port; it is closed when the test ends. */
export async function startFake(behaviour: Behaviour = ok(), options: FakeOptions = {}): Promise<FakeUpstream> {
  const fake = new ScriptedUpstream(behaviour, options);
  await fake.listen(options.port ?? 0, options.host ?? "127.0.0.1");
  onTestFinished(() => fake.kill());
  return fake;
}

class ScriptedUpstream implements FakeUpstream {
  readonly calls: Call[] = [];
  readonly probes: string[] = [];
  models: readonly string[] | undefined;
  onProbe: FakeUpstream["onProbe"];
  url = "";
  #behaviour: Behaviour;
  readonly #next: Behaviour[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #scheme: string;
  readonly #server: Server;

  constructor(behaviour: Behaviour, { models, keepAliveMs, tls }: FakeOptions) {
    const receive = (request: IncomingMessage, response: ServerResponse): void => this.#receive(request, response);
    const options = { keepAliveTimeout: 0 };
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server =
      tls === undefined ? createServer(options, receive) : createTlsServer({ ...options, ...tls }, receive);
    this.#behaviour = behaviour;
    this.models = models ?? ["m"];
    if (keepAliveMs !== undefined) this.#server.keepAliveTimeout = keepAliveMs;
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  async listen(port: number, host: string): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, host, () => resolve()));
    this.url = `${this.#scheme}://${host}:${(this.#server.address() as AddressInfo).port}`;
  }

  behave(behaviour: Behaviour): void {
    this.#behaviour = behaviour;
  }

  next(...behaviours: Behaviour[]): void {
    this.#next.push(...behaviours);
  }

  async call(index: number): Promise<Call> {
    await until(() => this.calls.length > index);
    return this.calls[index] as Call;
  }

  stopListening(): void {
    this.#server.close();
  }

  kill(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    if (isProbe(request)) {
      this.probes.push(request.url ?? "");
      (this.onProbe ?? this.#answerProbe).call(this, request, response);
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const call = new ReceivedCall(request, response, Buffer.concat(chunks.splice(0)));
      this.calls.push(call);
      (this.#next.shift() ?? this.#behaviour)(call);
    });
  }

  #answerProbe(request: IncomingMessage, response: ServerResponse): void {
    if (!request.url?.endsWith("/v1/models") || this.models === undefined) {
      response.writeHead(404).end();
      return;
    }
    const data = this.models.map((id) => ({ id, object: "model", created: 0, owned_by: "fake" }));
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ object: "list", data }));
  }
}

class ReceivedCall implements Call {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly response: ServerResponse;
  readonly socket: Socket;
  isAborted = false;

  constructor(request: IncomingMessage, response: ServerResponse, body: Buffer) {
    this.method = request.method ?? "";
    this.path = request.url ?? "";
    this.headers = request.headers;
    this.rawHeaders = request.rawHeaders;
    this.body = body;
    this.response = response;
    this.socket = request.socket;
    response.on("close", () => {
      this.isAborted = !response.writableFinished;
    });
  }
}

const PROBED_PATHS: readonly string[] = [
  "/v1/models",
  "/health",
  "/props",
  "/info",
  "/api/version",
  "/server_info",
  "/get_server_info",
  "/version",
  "/metrics",
];

function isProbe({ method, url = "" }: IncomingMessage): boolean {
  return method === "GET" && PROBED_PATHS.some((path) => url.endsWith(path));
}

/** A port that refuses connections: it takes root to listen there, and nothing does. */
export const REFUSING_URL = "http://127.0.0.1:1";

/** A whole chat completion. */
export const COMPLETION: object = {
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
};

/** 200 with `body`: text and bytes as they are, anything else as JSON. */
export function ok(body: unknown = COMPLETION, headers: Readonly<Record<string, string | string[]>> = {}): Behaviour {
  return code(200, body, headers);
}

export function code(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string | string[]>> = {},
): Behaviour {
  return ({ response }) => {
    const bytes = Buffer.isBuffer(body) || typeof body === "string" ? body : JSON.stringify(body);
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(bytes);
  };
}

/** Reads the request and never answers; a test may answer it by hand. */
export const hold: Behaviour = () => {};

/** Begins a 200 with an event stream, and sends nothing more. */
export const headThenHold: Behaviour = ({ response }) => {
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
};

/** `count` events with one token each, `gapMs` apart, then a finish reason and `[DONE]`. */
export function sse(count: number, gapMs = 0): Behaviour {
  const events = [...Array.from({ length: count }, (_, i) => tokenEvent(i)), FINISH_EVENT, DONE_EVENT];
  return gapMs === 0 ? stream(events.join("")) : slowStream(events, gapMs);
}

/** An event stream with these bytes. */
export function stream(text: string | Buffer, headers: Readonly<Record<string, string>> = {}): Behaviour {
  return ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream", ...headers }).end(text);
  };
}

function slowStream(events: readonly string[], gapMs: number): Behaviour {
  return ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    let next = 0;
    const timer = setInterval(() => {
      response.write(events[next++] ?? "");
      if (next === events.length) response.end();
    }, gapMs);
    response.on("close", () => clearInterval(timer));
  };
}

/** Sends `count` events of a stream and resets the connection; 0: after the head alone. */
export function rstAt(count: number): Behaviour {
  return (call) => sendEvents(call, count, () => call.socket.resetAndDestroy());
}

/** Sends `count` events of a stream and closes the connection without the end of its chunked body. */
export function finAt(count: number): Behaviour {
  return (call) => sendEvents(call, count, () => call.socket.destroy());
}

function sendEvents({ response }: Call, count: number, then: () => void): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const events = Array.from({ length: count }, (_, i) => tokenEvent(i)).join("");
  if (events === "") setImmediate(then);
  else response.write(events, then);
}

/** Writes these bytes to the connection, head and framing included, and ends it. */
export function raw(bytes: string | Buffer): Behaviour {
  return ({ socket }) => socket.end(bytes);
}

/** A chat event with one token of text. */
export function tokenEvent(index: number): string {
  return chatEvent({ choices: [{ index: 0, delta: { content: `t${index} ` }, finish_reason: null }] });
}

export function chatEvent(fields: object): string {
  return `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "m", ...fields })}\n\n`;
}

export const FINISH_EVENT: string = chatEvent({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
export const USAGE_EVENT: string = chatEvent({
  choices: [],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
});
export const DONE_EVENT = "data: [DONE]\n\n";
