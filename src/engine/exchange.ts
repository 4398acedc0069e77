import type { IncomingMessage, ServerResponse } from "node:http";
import { badRequest, type Failure } from "./failure.ts";
import type { Fault } from "./faults.ts";

/** Answers with JSON in one piece. */
export function sendJson(response: ServerResponse, status: number, body: object, headers: object = {}): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

/** Reads a JSON body; undefined: the client left before it was complete. */
export async function readJson(request: IncomingMessage): Promise<{ readonly value: unknown } | Failure | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  } catch {
    return undefined;
  }
  try {
    return { value: JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown };
  } catch {
    return badRequest("The request body is not valid JSON.");
  }
}

/** Breaks the connection as the fault says; what was written before still goes out, except on a reset. */
export function breakConnection(response: ServerResponse, kind: "reset" | "fin"): void {
  const { socket } = response;
  if (socket === null) return;
  if (kind === "reset") socket.resetAndDestroy();
  else socket.destroySoon();
}

/** What an event stream needs to play a fault. */
export interface StreamFaultActions {
  /** Events that tell the client of a dead engine. */
  failureEvents(): readonly string[];
  freeze(durationMs: number): void;
}

/** A stream of server-sent events, each in a socket write of its own, that plays at most one fault. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #fault: Fault | undefined;
  readonly #actions: StreamFaultActions;
  #sent = 0;
  #isCut = false;

  /** Sends the head at once, as vLLM does: it says nothing about the first token. */
  constructor(response: ServerResponse, fault: Fault | undefined, actions: StreamFaultActions) {
    this.#response = response;
    this.#fault = fault;
    this.#actions = actions;
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
    response.flushHeaders();
    this.#strike();
  }

  send(event: string): void {
    if (this.#isCut) return;
    this.#write(event);
    this.#sent++;
    this.#strike();
  }

  end(): void {
    if (!this.#isCut) this.#response.end();
  }

  #write(event: string): void {
    this.#response.write(event);
    // Node joins the writes of one turn; an engine sends its events one by one.
    this.#response.socket?.uncork();
  }

  #strike(): void {
    const fault = this.#fault;
    if (fault === undefined || fault.after !== this.#sent) return;
    if (fault.kind === "freeze") {
      this.#actions.freeze(fault.value);
      return;
    }
    this.#isCut = true;
    if (fault.kind === "error") {
      for (const event of this.#actions.failureEvents()) this.#write(event);
      this.#response.end();
    } else if (fault.kind === "reset" || fault.kind === "fin") {
      breakConnection(this.#response, fault.kind);
    }
  }
}
