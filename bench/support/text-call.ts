import { Agent, type IncomingMessage, request } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { type AnswerJson, errorCode, nothingRead, type TextApi, type TextRead, TextStream } from "./text-api.ts";

/** What is asked, and how the answer will be known to be whole. */
export interface Question {
  readonly api: TextApi;
  readonly isStream: boolean;
  /** All fields of the body but `stream`. */
  readonly body: object;
  /** Exactly so many are to be generated, over all choices. */
  readonly outputTokens: number;
  /** Texts of the choices as an engine that was asked directly gave them; undefined: they differ from time to time. */
  readonly texts: readonly string[] | undefined;
}

/** What a client did while it was asking. */
export interface Manner {
  /** Leaves so long after the whole request was sent, at whatever it is; undefined: stays. */
  readonly leavesAfterMs?: number | undefined;
  /** Leaves with the event after so many of the stream. */
  readonly leavesAfterEvents?: number | undefined;
  /** Stops for so long whenever so much more has come. */
  readonly pause?: { readonly bytes: number; readonly ms: number } | undefined;
}

/** How a request ended, as its client saw it. */
export type Ending =
  /** The answer is whole and right. */
  | "whole"
  /** An answer of 400 or more, whole. */
  | "refused"
  /** An answer that had begun broke off, and the client could tell: by a broken connection or an error event. */
  | "broken"
  /** An answer that ended as if it were whole, and is not, or is not what the engine says. */
  | "false"
  /** No byte of an answer came, and the connection is gone. */
  | "lost"
  /** Nothing came to an end within the client's patience. */
  | "hung"
  /** The client left. */
  | "left";

/** One request and what became of it. */
export interface Call {
  readonly id: string;
  readonly question: Question;
  readonly sentAtMs: number;
  readonly endedAtMs: number;
  readonly ending: Ending;
  /** 0: no answer began. */
  readonly status: number;
  /** Error code of a refusal or a broken stream, or what is wrong with the answer. */
  readonly cause: string;
  /** The balancer refused the request itself. */
  readonly isOwnRefusal: boolean;
  /** Who answered, as the balancer says; undefined: nobody. */
  readonly endpoint: string | undefined;
  /** What came of each choice. */
  readonly texts: readonly string[];
}

/** What a client that hears nothing waits before it is a finding. */
const PATIENCE_MS = 60_000;

/** Asks over one connection of its own, one question after the other. */
export class TextClient {
  readonly #origin: string;
  readonly #model: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(origin: string, model: string) {
    this.#origin = origin;
    this.#model = model;
  }

  /** Always resolves. */
  ask(id: string, question: Question, manner: Manner = {}): Promise<Call> {
    return new Promise((resolve) =>
      new Asking(id, question, manner, resolve).start(this.#origin, this.#model, this.#agent),
    );
  }

  /** Closes its connection. */
  close(): void {
    this.#agent.destroy();
  }
}

class Asking {
  readonly #id: string;
  readonly #question: Question;
  readonly #manner: Manner;
  readonly #resolve: (call: Call) => void;
  readonly #sentAtMs = performance.now();
  readonly #stream: TextStream;
  readonly #decoder = new StringDecoder("utf8");
  #response: IncomingMessage | undefined;
  #text = "";
  #texts: readonly string[] = [];
  #events = 0;
  #unpausedBytes = 0;
  #isOver = false;
  #stop: () => void = () => {};
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(id: string, question: Question, manner: Manner, resolve: (call: Call) => void) {
    this.#id = id;
    this.#question = question;
    this.#manner = manner;
    this.#resolve = resolve;
    this.#stream = new TextStream(question.api);
  }

  start(origin: string, model: string, agent: Agent): void {
    const { api, body, isStream } = this.#question;
    const text = JSON.stringify({ model, ...body, stream: isStream });
    const sent = request(`${origin}${api.path}`, {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
        "x-request-id": this.#id,
      },
    });
    this.#stop = () => sent.destroy();
    this.#timers.push(setTimeout(() => this.#end("hung", "no end"), PATIENCE_MS));
    sent.on("finish", () => this.#sent());
    sent.on("error", (error) => this.#broke(error));
    sent.on("response", (response) => this.#begin(response));
    sent.end(text);
  }

  /** The request is on its way: who left before could not say whether it ever arrived. */
  #sent(): void {
    const { leavesAfterMs } = this.#manner;
    if (leavesAfterMs !== undefined) this.#timers.push(setTimeout(() => this.#end("left", ""), leavesAfterMs));
  }

  #begin(response: IncomingMessage): void {
    this.#response = response;
    response.on("error", (error) => this.#broke(error));
    response.on("data", (chunk: Buffer) => this.#take(response, chunk));
    response.on("end", () => (response.complete ? this.#answered(response) : this.#broke(new Error("cut"))));
  }

  #take(response: IncomingMessage, chunk: Buffer): void {
    const { pause, leavesAfterEvents } = this.#manner;
    const text = this.#decoder.write(chunk);
    if (isEventStream(response)) {
      this.#events += text.split("\n\n").length - 1;
      this.#stream.push(text);
    } else this.#text += text;
    if (leavesAfterEvents !== undefined && this.#events > leavesAfterEvents) this.#end("left", "");
    this.#unpausedBytes += chunk.length;
    if (pause === undefined || this.#unpausedBytes < pause.bytes) return;
    this.#unpausedBytes = 0;
    response.pause();
    this.#timers.push(setTimeout(() => response.resume(), pause.ms));
  }

  #answered(response: IncomingMessage): void {
    if ((response.statusCode ?? 0) >= 400) {
      this.#end("refused", refusalCode(response, this.#text));
      return;
    }
    const read = isEventStream(response) ? this.#stream.read : readWhole(this.#question.api, this.#text);
    this.#texts = read.texts;
    const problem = problemOf(read, this.#question);
    if (read.error !== undefined) this.#end("broken", read.error);
    else this.#end(problem === undefined ? "whole" : "false", problem ?? "");
  }

  #broke(error: NodeJS.ErrnoException): void {
    const cause = this.#stream.read.error ?? error.code ?? error.message;
    this.#end(this.#response === undefined ? "lost" : "broken", cause);
  }

  #end(ending: Ending, cause: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    if (ending !== "whole" && ending !== "refused") this.#stop();
    const headers = this.#response?.headers ?? {};
    const endpoint = headers["x-evenkeel-endpoint"];
    this.#resolve({
      id: this.#id,
      question: this.#question,
      sentAtMs: this.#sentAtMs,
      endedAtMs: performance.now(),
      ending,
      status: this.#response?.statusCode ?? 0,
      cause,
      isOwnRefusal: ending === "refused" && headers["x-evenkeel-reason"] !== undefined,
      endpoint: typeof endpoint === "string" ? endpoint : undefined,
      texts: this.#texts,
    });
  }
}

function isEventStream({ headers }: IncomingMessage): boolean {
  return headers["content-type"]?.startsWith("text/event-stream") === true;
}

function refusalCode({ headers }: IncomingMessage, text: string): string {
  const reason = headers["x-evenkeel-reason"];
  if (typeof reason === "string") return reason;
  try {
    return errorCode(JSON.parse(text) as AnswerJson);
  } catch {
    return "";
  }
}

function readWhole(api: TextApi, text: string): TextRead {
  try {
    return api.readWhole(JSON.parse(text) as AnswerJson);
  } catch {
    return nothingRead();
  }
}

/** What keeps an answer from being whole; undefined: nothing. */
function problemOf(read: TextRead, { api, isStream, texts, outputTokens }: Question): string | undefined {
  if (!read.isFinished) return "no reason to stop";
  if (isStream && !read.isDone) return `no end mark of ${api.name}`;
  if (read.outputTokens !== undefined && read.outputTokens !== outputTokens) return "another number of tokens";
  if (texts !== undefined && texts.join("\n") !== read.texts.join("\n")) return "another text";
  return undefined;
}
