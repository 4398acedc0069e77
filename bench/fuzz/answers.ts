import { Agent, type IncomingMessage, request } from "node:http";
import fc from "fast-check";
import { SAMPLE_STREAMS } from "../../test/support/sample-streams.ts";
import { anyCuts, anyShare, applied, type Edited, editedText } from "./edits.ts";
import { FuzzedGateway } from "./fuzzed-gateway.ts";
import { type RawAnswer, RawEngine } from "./raw-engine.ts";
import type { FuzzTarget } from "./target.ts";

/** What an engine answers, byte by byte, and who asked. */
interface EngineAnswer {
  readonly answer: Edited;
  /** Breaks off after this share of it; undefined: says it all. */
  readonly cutAt: number | undefined;
  readonly cuts: readonly number[];
  readonly ending: RawAnswer["ending"];
  /** Index of the request. */
  readonly asked: number;
}

const ASKED = SAMPLE_STREAMS.flatMap(({ path, body }) => [
  { path, body },
  { path, body: { ...body, stream: false } },
  { path, body: { ...body, stream_options: { include_usage: true } } },
]);

const WHOLE = [
  '{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}',
  '{"choices":[{"index":0,"text":"a","finish_reason":"abort"}],"usage":{"prompt_tokens":-7,"completion_tokens":1e99}}',
  '{"choices":[{"index":0,"text":"a","finish_reason":"stop"}],"usage":{"total_tokens":1,"completion_tokens":5}}',
  '{"type":"message","content":[],"usage":{"input_tokens":1,"output_tokens":2}}',
];
const REFUSALS = [
  '{"error":{"message":"stream_options: not permitted","code":400}}',
  '{"error":{"message":"The queue is full.","code":503}}',
  "<html>",
];
const ANSWERS: readonly string[] = [
  ...SAMPLE_STREAMS.map(({ events }) => chunked(events)),
  ...SAMPLE_STREAMS.map(({ events }) => ended(events.join(""))),
  ...WHOLE.map((body) => sized(200, body)),
  ...[400, 404, 422, 429, 500, 502, 503, 504].flatMap((status) =>
    REFUSALS.map((body) => sized(status, body, "retry-after: 1\r\n")),
  ),
  `HTTP/1.1 100 Continue\r\n\r\n${sized(200, "{}")}`,
  "HTTP/1.1 204 No Content\r\n\r\n",
  "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
];
const WORDS = [
  ...[
    "\r\n",
    "\n",
    "\0",
    ":",
    " ",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0",
    "HTTP/2",
    "999",
    "099",
    "0\r\n\r\n",
    "ffffffff\r\n",
    "-1\r\n",
  ],
  ...[
    "content-length: 5\r\n",
    "content-length: 99999999999\r\n",
    "transfer-encoding: chunked\r\n",
    "content-encoding: gzip\r\n",
  ],
  ...[
    "retry-after: -1\r\n",
    "retry-after: never\r\n",
    "retry-after: 1e9\r\n",
    "set-cookie: a\r\n",
    "connection: close\r\n",
    "trailer: x\r\n",
  ],
  ...[
    "content-type: text/event-stream\r\n",
    "data: [DONE]\n\n",
    'data: {"error":{"code":503}}\n\n',
    ": ping\n\n",
    '"usage":',
    "null",
    "{",
    "\xff",
  ],
];

/** Whatever an engine answers, the client gets an answer or a broken connection, and nothing of it stays. */
export const answers: FuzzTarget = {
  name: "engine answers",
  inputs: "heads and bodies of answers through a balancer, changed, cut anywhere, broken off, reset or never ended",
  async open() {
    const engine = await RawEngine.start();
    const round = new Round(engine);
    return {
      arbitrary: fc.record({
        answer: editedText(ANSWERS, WORDS, 3),
        cutAt: fc.option(anyShare, { nil: undefined, freq: 3 }),
        cuts: anyCuts,
        // Each that never ends costs a time-out.
        ending: fc.noBias(fc.nat({ max: 999 })).map(endingOf),
        asked: fc.nat({ max: ASKED.length - 1 }),
      }),
      check: (input) => round.check(input as EngineAnswer),
      async close() {
        await round.end();
        await engine.close();
      },
    };
  },
};

function endingOf(kind: number): RawAnswer["ending"] {
  if (kind === 0) return "silence";
  return kind < 250 ? "reset" : "end";
}

/** Inputs after which a new balancer is started: one that has met nothing but broken engines refuses them all. */
const ROUND = 500;

class Round {
  readonly #engine: RawEngine;
  #gateway: FuzzedGateway | undefined;
  #inputs = 0;

  constructor(engine: RawEngine) {
    this.#engine = engine;
  }

  async check({ answer, cutAt, cuts, ending, asked }: EngineAnswer): Promise<void> {
    if (this.#inputs++ % ROUND === 0) await this.end();
    this.#gateway ??= await startGateway(this.#engine);
    const bytes = Buffer.from(applied(answer), "latin1");
    const said = bytes.subarray(0, cutAt === undefined ? bytes.length : Math.floor(cutAt * bytes.length));
    this.#engine.answer = { bytes: said, cuts, ending };
    const got = await ask(this.#gateway.url, asked);
    const isUnchanged = answer.edits.length === 0;
    if (isUnchanged && said.length < bytes.length && got.isWhole && got.status === 200) {
      throw new Error("an answer that was broken off reached the client as a whole one");
    }
    await this.#gateway.assertIdle();
  }

  async end(): Promise<void> {
    await this.#gateway?.close();
    this.#gateway = undefined;
  }
}

function startGateway({ url }: RawEngine): Promise<FuzzedGateway> {
  return FuzzedGateway.start([url, url.replace("127.0.0.1", "127.0.0.2")], {
    timeouts: { firstByteMs: 200, idleMs: 200, drainMs: 100 },
  });
}

interface Got {
  /** 0: no answer. */
  readonly status: number;
  /** False: the connection broke before the answer was complete, as an HTTP client sees it. */
  readonly isWhole: boolean;
}

const agent = new Agent({ keepAlive: false });

function ask(url: string, index: number): Promise<Got> {
  const { path, body } = ASKED[index] as (typeof ASKED)[number];
  return new Promise((resolve) => {
    const sent = request(url + path, { method: "POST", agent });
    let response: IncomingMessage | undefined;
    sent.on("response", (begun) => {
      response = begun;
      begun.on("error", () => {});
      begun.resume();
    });
    sent.on("error", () => {});
    sent.on("close", () => resolve({ status: response?.statusCode ?? 0, isWhole: response?.complete === true }));
    sent.end(JSON.stringify(body));
  });
}

function chunked(events: readonly string[]): string {
  const chunks = events.map((event) => `${Buffer.byteLength(event).toString(16)}\r\n${latin1(event)}\r\n`);
  return `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${chunks.join("")}0\r\n\r\n`;
}

/** An answer that ends with its connection: all of it but its last event is no whole answer either. */
function ended(body: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${latin1(body)}`;
}

function sized(status: number, body: string, headers: string = ""): string {
  return `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}
