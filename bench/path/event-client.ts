import { connect } from "node:net";
import { ChunkedBody } from "./chunked-body.ts";
import type { ClientSettings } from "./peer.ts";
import { requestText } from "./raw-request.ts";
import { DONE_EVENT, requestBody, WORKLOAD } from "./workload.ts";

/** What the event phase saw. */
export interface EventCount {
  readonly events: number;
  /** From the first connection to the end of the last stream. */
  readonly seconds: number;
  /** What went wrong, each kind once; empty: every stream brought every event. */
  readonly problems: readonly string[];
}

/**
 * The client of the event phase, on raw sockets in a process of its own: opens all streams at once, counts their
 * events and checks that each came whole. Started with `fork`; its arguments are the port, the number of
 * streams and further headers as JSON, its message is the count.
 */
async function readStreams(port: number, count: number, headers: ClientSettings["headers"]): Promise<EventCount> {
  const request = requestText(requestBody(true), headers);
  const startMs = performance.now();
  const streams = await Promise.all(Array.from({ length: count }, () => readStream(port, request)));
  const problems = streams.flatMap(({ problem }) => (problem === undefined ? [] : [problem]));
  return {
    events: streams.reduce((total, { events }) => total + events, 0),
    seconds: (performance.now() - startMs) / 1000,
    problems: [...new Set(problems)],
  };
}

interface StreamResult {
  readonly events: number;
  readonly problem: string | undefined;
}

const SILENCE_MS = 10_000;
const NEW_LINE = 10;

function readStream(port: number, request: string): Promise<StreamResult> {
  return new Promise((resolve) => {
    const answer = new StreamAnswer();
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => socket.write(request));
    const finish = (problem?: string): void => {
      socket.destroy();
      resolve({ events: answer.events, problem: problem ?? answer.problem });
    };
    socket.setTimeout(SILENCE_MS, () => finish(`no event within ${SILENCE_MS / 1000} s`));
    socket.on("data", (data: Buffer) => {
      if (answer.push(data)) finish();
    });
    socket.on("error", (error) => finish(error.message));
    socket.on("end", () => finish("the stream was cut"));
  });
}

/** Reads one answer: its head, then its events. */
class StreamAnswer {
  readonly #body = new ChunkedBody((data) => this.#count(data));
  #head: string | undefined = "";
  #blankLines = 0;
  #endsWithNewLine = false;
  #tail = "";

  /** Events with data for the client; the closing one does not count. */
  get events(): number {
    return Math.max(0, this.#blankLines - 1);
  }

  /** What was wrong with a complete answer. */
  get problem(): string | undefined {
    if (this.#head !== undefined && this.#head !== "") return `answered ${this.#head.split("\r\n", 1)[0]}`;
    if (!this.#tail.endsWith(DONE_EVENT)) return "the stream ended without [DONE]";
    const { eventsPerStream } = WORKLOAD;
    return this.events === eventsPerStream ? undefined : `${this.events} of ${eventsPerStream} events came`;
  }

  /** True: the answer is complete, or of no use. */
  push(data: Buffer): boolean {
    if (this.#head === undefined) {
      this.#body.push(data);
      return this.#body.isComplete;
    }
    const head: string = this.#head + data.toString("latin1");
    const end = head.indexOf("\r\n\r\n");
    this.#head = head;
    if (end < 0) return false;
    if (!/^HTTP\/1.1 200 /.test(head) || !/\r\ntransfer-encoding: chunked/i.test(head)) return true;
    this.#head = undefined;
    this.#body.push(Buffer.from(head.slice(end + 4), "latin1"));
    return this.#body.isComplete;
  }

  #count(data: Buffer): void {
    for (const byte of data) {
      const isNewLine = byte === NEW_LINE;
      if (isNewLine && this.#endsWithNewLine) this.#blankLines++;
      this.#endsWithNewLine = isNewLine;
    }
    this.#tail = (this.#tail + data.toString("latin1")).slice(-DONE_EVENT.length);
  }
}

const [port, count, headers = "{}"] = process.argv.slice(2);
process.send?.(await readStreams(Number(port), Number(count), JSON.parse(headers) as ClientSettings["headers"]), () =>
  process.exit(),
);
