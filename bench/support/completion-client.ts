import { Agent, type Dispatcher } from "undici";

/** What the client saw of one request; times are real, not the trace's. */
export interface Answer {
  /** Time to the first event with text. */
  readonly ttftMs: number;
  /** Time to the end of the answer. */
  readonly e2eMs: number;
  /** Id of the endpoint that served it. */
  readonly endpoint: string;
  /** How long the balancer held it; 0: not at all. */
  readonly heldMs: number;
  /** Prompt tokens the engine found in its cache. */
  readonly cachedTokens: number;
}

/** One request: how much it asks for. */
export interface Asked {
  readonly prompt: string;
  readonly promptTokens: number;
  /** The engine is told, the balancer is not. */
  readonly outputTokens: number;
  /** Undefined: it belongs to no session. */
  readonly sessionKey: string | undefined;
}

const ENDPOINT_HEADER = "x-evenkeel-endpoint";
const HELD_HEADER = "x-evenkeel-held-ms";
const PATH = "/v1/completions";
/** The last events of a stream fit in it: finish, usage, [DONE]. */
const TAIL_BYTES = 1024;

/** Sends streamed completions to a balancer in front of built-in engines, and times them. */
export class CompletionClient {
  readonly #origin: string;
  readonly #model: string;
  readonly #agent = new Agent({ pipelining: 1, connections: null, headersTimeout: 0, bodyTimeout: 0 });

  constructor(origin: string, model: string) {
    this.#origin = origin;
    this.#model = model;
  }

  /** @throws when the answer is not exactly what was asked for. */
  ask(asked: Asked): Promise<Answer> {
    const body = JSON.stringify({
      model: this.#model,
      prompt: asked.prompt,
      natural_tokens: asked.outputTokens,
      stream: true,
      stream_options: { include_usage: true },
    });
    return new Promise((resolve, reject) => {
      const { sessionKey } = asked;
      const session = sessionKey === undefined ? {} : { "x-session-id": sessionKey };
      const headers = { "content-type": "application/json", ...session };
      const handler = new AnswerHandler(asked, resolve, reject);
      this.#agent.dispatch({ origin: this.#origin, path: PATH, method: "POST", headers, body }, handler);
    });
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #asked: Asked;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: Error) => void;
  readonly #startMs = performance.now();
  #status = 0;
  #head = { endpoint: "none", heldMs: 0 };
  #ttftMs: number | undefined;
  /** Until the first text: all that came. Then the last bytes. */
  #text: Buffer = Buffer.alloc(0);

  constructor(asked: Asked, resolve: (answer: Answer) => void, reject: (error: Error) => void) {
    this.#asked = asked;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Tells undici which form of handler this is; there is nothing to do. */
  onRequestStart(): void {}

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    this.#head = { endpoint: String(headers[ENDPOINT_HEADER]), heldMs: Number(headers[HELD_HEADER] ?? 0) };
  }

  onResponseData(_controller: Dispatcher.DispatchController, data: Buffer): void {
    if (this.#ttftMs === undefined) {
      this.#text = Buffer.concat([this.#text, data]);
      if (/"text":"[^"]/.test(this.#text.toString())) this.#ttftMs = performance.now() - this.#startMs;
    } else {
      this.#text = data.length >= TAIL_BYTES ? data : Buffer.concat([this.#text.subarray(-TAIL_BYTES), data]);
    }
  }

  onResponseEnd(): void {
    const e2eMs = performance.now() - this.#startMs;
    const problem = this.#problem();
    if (problem !== undefined || this.#ttftMs === undefined) this.#reject(new Error(problem ?? "no text"));
    else this.#resolve({ ...this.#head, ttftMs: this.#ttftMs, e2eMs, cachedTokens: this.#count("cached_tokens") });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reject(error);
  }

  /** Undefined: the answer is exactly what was asked for. */
  #problem(): string | undefined {
    const text = this.#text.toString();
    if (this.#status !== 200) return `status ${this.#status}: ${text.slice(0, 200)}`;
    if (!text.trimEnd().endsWith("data: [DONE]")) return "the stream ended without [DONE]";
    const { promptTokens, outputTokens } = this.#asked;
    if (this.#count("prompt_tokens") !== promptTokens) return "the engine counted another number of prompt tokens";
    if (this.#count("completion_tokens") !== outputTokens) return "the engine generated another number of tokens";
    return undefined;
  }

  /** A count of the usage at the end; NaN: it is not there. */
  #count(name: string): number {
    return Number(new RegExp(`"${name}":(\\d+)`).exec(this.#text.toString())?.[1]);
  }
}
