import { createServer, type Server, type Socket } from "node:net";
import type { OriginOptions } from "./origins.ts";
import { DONE_EVENT, EVENT, MODEL, PATH, WORKLOAD } from "./workload.ts";

/**
 * The origins of the path benchmark: static inference servers on raw sockets in one process of their own. They
 * answer what balancers probe, a chat request with a fixed answer, and a streamed one with a fixed number of
 * events at a fixed pace, or with one event and silence. Started with `fork` and `OriginOptions` as JSON: the first
 * message out holds the ports; any message in is answered with the requests each origin has served.
 */
const { count, isSilent } = JSON.parse(process.argv[2] ?? "") as OriginOptions;

/** Streams advance in as many groups as there are milliseconds between two events: load is even, for every peer. */
const groups: Set<Stream>[] = Array.from({ length: WORKLOAD.eventGapMs }, () => new Set());

const served: number[] = new Array<number>(count).fill(0);

interface Stream {
  readonly socket: Socket;
  readonly reportsUsage: boolean;
  left: number;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");
const USAGE = { prompt_tokens: 500, completion_tokens: WORKLOAD.eventsPerStream, total_tokens: 700 };

const COMPLETION = json(200, {
  id: "c",
  object: "chat.completion",
  created: 1,
  model: MODEL,
  choices: [{ index: 0, message: { role: "assistant", content: "A short answer." }, finish_reason: "stop" }],
  usage: USAGE,
});

/** Of the prompt of every request. */
const TOKEN_IDS = Array.from({ length: USAGE.prompt_tokens }, (_, index) => 1000 + index);

/** What balancers ask before they send traffic; `render` is what vLLM tokenizes chats with, for every request. */
const PROBES: ReadonlyMap<string, Buffer> = new Map([
  ["/health", json(200, { status: "ok" })],
  ["/health_generate", json(200, { status: "ok" })],
  ["/v1/models", json(200, { object: "list", data: [{ id: MODEL, object: "model", created: 1, owned_by: "bench" }] })],
  ["/get_model_info", json(200, { model_path: MODEL, is_generation: true })],
  ["/get_server_info", json(200, { model_path: MODEL, served_model_name: MODEL })],
  ["/v1/chat/completions/render", json(200, { request_id: "c", token_ids: TOKEN_IDS })],
]);
const NOT_FOUND = json(404, { error: { message: "not found" } });

const STREAM_HEAD = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
);
const EVENT_CHUNK = chunk(EVENT);
const END_CHUNKS = Buffer.concat([chunk(DONE_EVENT), LAST_CHUNK]);
const FINISH_CHUNK = chunk(eventOf({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
const USAGE_CHUNK = chunk(eventOf({ choices: [], usage: USAGE }));

function eventOf(fields: object): string {
  return `data: ${JSON.stringify({ id: "c", model: MODEL, ...fields })}\n\n`;
}

function json(status: number, value: object): Buffer {
  const body = JSON.stringify(value);
  const head = `HTTP/1.1 ${status} ${status === 200 ? "OK" : "Not Found"}\r\ncontent-type: application/json`;
  return Buffer.from(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function chunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

/** Answers the requests of one connection, which come one after the other. */
function accept(socket: Socket, origin: number): void {
  socket.setNoDelay(true);
  let pending: Buffer | undefined;
  socket.on("data", (data: Buffer) => {
    let rest = pending === undefined ? data : Buffer.concat([pending, data]);
    for (;;) {
      const end = requestEnd(rest);
      if (end === undefined) break;
      answer(socket, rest.subarray(0, end), origin);
      rest = rest.subarray(end);
    }
    pending = rest.length > 0 ? rest : undefined;
  });
  // A client or a peer that breaks off counts in its own figures.
  socket.on("error", () => socket.destroy());
}

/** Where the first request in `data` ends; undefined: it is not complete. */
function requestEnd(data: Buffer): number | undefined {
  const headEnd = data.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const bodyStart = headEnd + HEAD_END.length;
  const head = data.toString("latin1", 0, headEnd);
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
    const lastChunk = data.indexOf(LAST_CHUNK, bodyStart);
    return lastChunk < 0 ? undefined : lastChunk + LAST_CHUNK.length;
  }
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  const end = bodyStart + Number(length ?? 0);
  return end <= data.length ? end : undefined;
}

function answer(socket: Socket, request: Buffer, origin: number): void {
  const [, path = ""] = request.toString("latin1", 0, request.indexOf("\r\n")).split(" ");
  if (path !== PATH) {
    socket.write(PROBES.get(path) ?? NOT_FOUND);
    return;
  }
  const index = served[origin] ?? 0;
  served[origin] = index + 1;
  if (request.includes('"stream":true')) startStream(socket, request.includes('"include_usage":true'), index);
  else socket.write(COMPLETION);
}

function startStream(socket: Socket, reportsUsage: boolean, index: number): void {
  socket.write(STREAM_HEAD);
  if (isSilent) {
    socket.write(EVENT_CHUNK);
    return;
  }
  const group = groups[index % groups.length] as Set<Stream>;
  const stream: Stream = { socket, reportsUsage, left: WORKLOAD.eventsPerStream };
  group.add(stream);
  socket.once("close", () => group.delete(stream));
}

/** Sends one event to each stream of the group; the last one says that the answer is finished. */
function advance(group: Set<Stream>): void {
  for (const stream of group) {
    if (--stream.left > 0) {
      stream.socket.write(EVENT_CHUNK);
      continue;
    }
    stream.socket.write(FINISH_CHUNK);
    if (stream.reportsUsage) stream.socket.write(USAGE_CHUNK);
    stream.socket.write(END_CHUNKS);
    group.delete(stream);
  }
}

/** Moves the groups on, one per millisecond; a late timer catches up. */
function startClock(): void {
  let done = Math.floor(performance.now());
  setInterval(() => {
    const due = Math.floor(performance.now());
    for (; done < due; done++) advance(groups[done % groups.length] as Set<Stream>);
  }, 1);
}

async function listen(origin: number): Promise<number> {
  const server: Server = createServer((socket) => accept(socket, origin));
  await new Promise<void>((resolve) => server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the origin has no port");
  return address.port;
}

startClock();
process.on("message", () => process.send?.(served));
process.on("disconnect", () => process.exit());
process.send?.(await Promise.all(served.map((_, origin) => listen(origin))));
