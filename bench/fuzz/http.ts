import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import fc from "fast-check";
import { SAMPLE_STREAMS } from "../../test/support/sample-streams.ts";
import { anyCuts, applied, cutAt, type Edited, editedText } from "./edits.ts";
import { FuzzedGateway } from "./fuzzed-gateway.ts";
import type { FuzzTarget } from "./target.ts";

/** What a client writes to one connection. */
interface Conversation {
  readonly requests: readonly (Edited | JsonRequest)[];
  readonly cuts: readonly number[];
  /** Leaves without waiting for an answer. */
  readonly leaves: boolean;
}

/** A request that is well framed, with any JSON as its body. */
interface JsonRequest {
  readonly path: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const PATHS = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/messages",
  "/v1/responses",
  "/v1/embeddings",
  "/v1/rerank",
  "/score",
  "/tokenize",
];
const CHUNKED = "transfer-encoding: chunked\r\n";
const CHUNKED_BODY = '9\r\n{"model":\r\n4\r\n"m"}\r\n0\r\n\r\n';
const REQUESTS: readonly string[] = [
  ...SAMPLE_STREAMS.map(({ path, body }) => post(path, body)),
  ...PATHS.map((path) =>
    post(path, { model: "m", prompt: "p", input: "p", query: "q", documents: ["d"], messages: [] }),
  ),
  "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
  "GET /v1/models/m?x=1 HTTP/1.1\r\nhost: x\r\n\r\n",
  "HEAD /v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
  "CONNECT example:443 HTTP/1.1\r\nhost: example:443\r\n\r\n",
  "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
  "GET http://x/v1/models HTTP/1.0\r\n\r\n",
  `POST /v1/completions HTTP/1.1\r\nhost: x\r\n${CHUNKED}\r\n${CHUNKED_BODY}`,
  `POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 13\r\n${CHUNKED}\r\n${CHUNKED_BODY}`,
  'POST /v1/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 13\r\n\r\n{"model":"m"}',
  'POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: 13\r\n\r\n{"model":"m"}',
  'POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 70\r\n\r\n--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n         ',
];
const WORDS = [
  ...[
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    ":",
    ";",
    ",",
    "\r\n\r\n",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/9.9",
    "0\r\n\r\n",
    "ffffffff\r\n",
  ],
  ...["content-length: 5\r\n", "content-length: 13\r\n", "Content-Length: +5\r\n", "content-length: -1\r\n", CHUNKED],
  ...[
    "Transfer-Encoding: chunked, identity\r\n",
    "transfer-encoding:\tchunked\r\n",
    "host: y\r\n",
    "expect: 100-continue\r\n",
  ],
  ...[
    "connection: close\r\n",
    "connection: authorization, host\r\n",
    "content-encoding: br\r\n",
    "authorization: Bearer x\r\n",
  ],
  ...[
    "x-evenkeel-priority: high\r\n",
    "x-evenkeel-timeout-ms: 1\r\n",
    "x-stainless-timeout: 1e9\r\n",
    "x-session-id: s\r\n",
  ],
  ...[
    '"stream":true',
    '"max_tokens":-1',
    '"model":null',
    '{"a":',
    "]",
    "}",
    "\\u0000",
    "\xc3\x28",
    "//",
    "/../",
    "%2e",
    "?a=b",
    "#",
  ],
];

/** Whatever bytes come on a connection, it is answered in HTTP or closed, and nothing of it stays. */
export const http: FuzzTarget = {
  name: "HTTP requests",
  inputs: "bytes of connections to a balancer: requests, changed and cut anywhere, and any JSON as body",
  async open() {
    const engine = await startEngine();
    const gateway = await FuzzedGateway.start([urlOf(engine)], { passthrough: ["/v1/audio/transcriptions"] });
    const request = fc.oneof(
      { weight: 3, arbitrary: editedText(REQUESTS, WORDS, 3) },
      { weight: 1, arbitrary: anyJsonRequest() },
    );
    return {
      arbitrary: fc.record({
        requests: fc.array(request, { minLength: 1, maxLength: 3 }),
        cuts: anyCuts,
        leaves: fc.noBias(fc.nat({ max: 9 })).map((kind) => kind === 0),
      }),
      async check(input) {
        await converse(gateway.url, input as Conversation);
        await gateway.assertIdle();
      },
      async close() {
        await gateway.close();
        engine.closeAllConnections();
        engine.close();
      },
    };
  },
};

function anyJsonRequest(): fc.Arbitrary<JsonRequest> {
  const names = [
    "messages",
    "prompt",
    "input",
    "content",
    "tools",
    "stream_options",
    "max_tokens",
    "n",
    "model",
    "user",
    "documents",
    "query",
  ];
  const part = fc.record({
    role: fc.constant("user"),
    content: fc.jsonValue({ maxDepth: 3 }),
    type: fc.constantFrom("text", "image_url"),
  });
  const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.array(part, { maxLength: 3 }), fc.boolean());
  return fc.record({
    path: fc.constantFrom(...PATHS),
    fields: fc.dictionary(fc.constantFrom(...names, "stream"), value),
  });
}

function textOf(request: Edited | JsonRequest): string {
  return "text" in request ? applied(request) : post(request.path, { model: "m", ...request.fields });
}

/** As a client that has said all it has to say: it closes its side and reads on. */
function converse(url: string, { requests, cuts, leaves }: Conversation): Promise<void> {
  const bytes = Buffer.from(requests.map(textOf).join(""), "latin1");
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const answer: Buffer[] = [];
    socket.on("data", (chunk) => {
      answer.push(chunk);
      // As clients do that were told so; the balancer waits for it, lest its answer is lost.
      if (isLast(Buffer.concat(answer).toString("latin1"))) socket.destroy();
    });
    // A connection that is cut is as good an end as any.
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.on("close", () => {
      const problem = problemOf(Buffer.concat(answer).toString("latin1"));
      if (problem === undefined) resolve();
      else reject(new Error(problem));
    });
    socket.on("connect", () => {
      for (const piece of cutAt(bytes, cuts)) socket.write(piece);
      if (leaves) socket.destroySoon();
      else socket.end();
    });
  });
}

/** Whether the answer that says it is the last on its connection is whole. */
function isLast(answers: string): boolean {
  const headEnd = answers.indexOf("\r\n\r\n", answers.indexOf("connection: close\r\n"));
  const length = /content-length: (\d+)\r\n(?:[^\r]+\r\n)*connection: close\r\n/.exec(answers)?.[1];
  return length !== undefined && headEnd !== -1 && answers.length >= headEnd + 4 + Number(length);
}

const ANSWER = /^HTTP\/1\.1 [1-5]\d\d /;
const STACK = /\n\s+at .*:\d+:\d+|node:internal|internal_error/;

function problemOf(answer: string): string | undefined {
  if (answer !== "" && !ANSWER.test(answer)) return `answered ${JSON.stringify(answer.slice(0, 200))}`;
  return STACK.test(answer) ? `answered with a look inside: ${answer.slice(0, 1000)}` : undefined;
}

/** Takes everything, and answers in a stream or in one piece as it is asked to. */
async function startEngine(): Promise<Server> {
  const [stream] = SAMPLE_STREAMS;
  const engine = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("error", () => {});
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      if (Buffer.concat(chunks).includes('"stream":true')) {
        response.writeHead(200, { "content-type": "text/event-stream" }).end(stream?.events.join(""));
      } else response.writeHead(200, { "content-type": "application/json" }).end('{"object":"list","data":[]}');
    });
  });
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  return engine;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function post(path: string, body: object): string {
  const text = JSON.stringify(body);
  const bytes = Buffer.from(text);
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\n\r\n`;
  return head + bytes.toString("latin1");
}
