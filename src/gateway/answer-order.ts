import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Keeps the requests of each connection in order: one is taken when the answer before it is done. */
export class AnswerOrder {
  readonly #last = new WeakMap<Duplex, ServerResponse>();
  /** Requests of a connection that wait for the one before them. */
  readonly #waiting = new WeakMap<Duplex, number>();

  /** Calls `take` when it is the request's turn; never, if its connection is over by then. */
  inTurn(request: IncomingMessage, response: ServerResponse, take: () => void): void {
    const { socket } = request;
    // The last answer told the client to send nothing more: what came nevertheless may be half of something else.
    if (!socket.writable) return;
    const before = response.socket === null ? this.#last.get(socket) : undefined;
    this.#last.set(socket, response);
    if (before === undefined) take();
    else this.#wait(before, socket, take);
  }

  /** The answer to the last request that came; undefined: none has come. */
  last(socket: Duplex): ServerResponse | undefined {
    return this.#last.get(socket);
  }

  /** Calls `then` when the connection has carried all answers that it owes; at once if it owes none. */
  afterAll(socket: Duplex, then: () => void): void {
    const last = this.#last.get(socket);
    if (last === undefined || last.closed) then();
    else last.once("close", then);
  }

  #wait(before: ServerResponse, socket: Duplex, take: () => void): void {
    // Nobody who wants answers sends so much ahead of them, and all of it takes memory.
    if (this.#countWaiting(socket, 1) > MAX_WAITING) socket.destroy();
    before.once("close", () => {
      this.#countWaiting(socket, -1);
      if (socket.writable) take();
    });
  }

  #countWaiting(socket: Duplex, change: number): number {
    const waiting = (this.#waiting.get(socket) ?? 0) + change;
    this.#waiting.set(socket, waiting);
    return waiting;
  }
}

/** Requests that one connection may send ahead of their answers. */
const MAX_WAITING = 64;
