import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { until } from "./until.ts";

/** An answer, as far as it came. */
export interface ClientAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly text: string;
  /** False: the connection broke before the body was complete, as the client's HTTP library sees it. */
  readonly isWhole: boolean;
}

export interface SendOptions {
  readonly method?: string;
  /** Objects are sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Undefined: a connection of its own, closed after the answer. */
  readonly agent?: Agent;
  /** The answer is not read before `resume`. */
  readonly isPaused?: boolean;
}

/** A request under way. */
export class ClientCall {
  readonly request: ClientRequest;
  readonly #chunks: Buffer[] = [];
  readonly #isPaused: boolean;
  #response: IncomingMessage | undefined;
  #error: Error | undefined;
  #isOver = false;

  constructor(url: string, { method = "POST", body, headers = {}, agent, isPaused = false }: SendOptions) {
    this.#isPaused = isPaused;
    const bytes = bytesOf(body);
    this.request = request(url, {
      method,
      agent: agent ?? new Agent({ keepAlive: false }),
      headers: { ...(bytes === undefined ? {} : { "content-type": "application/json" }), ...headers },
    });
    this.request.on("error", (error) => {
      this.#error = error;
      this.#isOver = true;
    });
    this.request.on("response", (response) => this.#read(response));
    if (bytes === undefined && method === "POST") return;
    this.request.end(bytes);
  }

  /** What has come of the body. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }

  /** Waits for the answer's head. */
  async head(): Promise<IncomingMessage> {
    await until(() => this.#response !== undefined || this.#error !== undefined);
    if (this.#response === undefined) throw this.#error ?? new Error("no answer");
    return this.#response;
  }

  /** Waits until the body so far ends in `text`. */
  async receives(text: string): Promise<void> {
    await until(() => this.text.endsWith(text) || this.#isOver);
    if (!this.text.endsWith(text)) throw new Error(`the answer ended without ${JSON.stringify(text)}: ${this.text}`);
  }

  /** Waits for the end of the answer, good or bad. */
  async answer(): Promise<ClientAnswer> {
    const response = await this.head();
    await until(() => this.#isOver);
    const body = Buffer.concat(this.#chunks);
    const { statusCode: status = 0, headers, rawHeaders, complete } = response;
    return { status, headers, rawHeaders, body, text: body.toString(), isWhole: complete };
  }

  /** Leaves, whatever the request is at. */
  abort(): void {
    this.request.destroy();
  }

  #read(response: IncomingMessage): void {
    this.#response = response;
    response.on("error", () => {});
    response.on("close", () => {
      this.#isOver = true;
    });
    if (!this.#isPaused) response.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
  }
}

function bytesOf(body: unknown): Buffer | string | undefined {
  if (body === undefined || Buffer.isBuffer(body) || typeof body === "string") return body;
  return JSON.stringify(body);
}

/** Sends a request. A POST without a body is left open: the test writes to its `request`. */
export function send(url: string, options: SendOptions = {}): ClientCall {
  return new ClientCall(url, options);
}

/** Sends a request and waits for the end of its answer. */
export function exchange(url: string, options: SendOptions = {}): Promise<ClientAnswer> {
  return send(url, options).answer();
}

/** A chat request that is answered in whole. */
export const CHAT: object = { model: "m", messages: [{ role: "user", content: "hi" }] };

/** A chat request that is answered in a stream. */
export const STREAMED_CHAT: object = { ...CHAT, stream: true };

/** A connection whose bytes the test writes and reads itself. */
export class RawClient {
  readonly socket: Socket;
  #received = "";
  #isClosed = false;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    this.socket.on("data", (chunk) => {
      this.#received += chunk.toString("latin1");
    });
    this.socket.on("error", () => {});
    this.socket.on("end", () => this.socket.end());
    this.socket.on("close", () => {
      this.#isClosed = true;
    });
  }

  get received(): string {
    return this.#received;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  write(text: string | Buffer): this {
    this.socket.write(text);
    return this;
  }

  /** Waits until what was received matches, or the connection is closed. */
  async receives(pattern: RegExp): Promise<string> {
    await until(() => pattern.test(this.#received) || this.#isClosed);
    if (!pattern.test(this.#received)) throw new Error(`closed without ${pattern}: ${this.#received}`);
    return this.#received;
  }

  /** Waits for the other side to close. */
  async closes(): Promise<string> {
    await until(() => this.#isClosed);
    return this.#received;
  }
}

/** A POST of JSON as raw bytes. */
export function rawPost(path: string, body: unknown, { version = "1.1", headers = "" } = {}): string {
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  return `POST ${path} HTTP/${version}\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${headers}\r\n${text}`;
}
