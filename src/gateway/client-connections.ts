import type { Socket } from "node:net";

/** The connections of clients: how many there are, and who came when there were too many. */
export class ClientConnections {
  /** May change; those that are open stay. */
  limit: number;
  /** Every one, also those that have not agreed on TLS yet. */
  readonly #open = new Set<Socket>();
  /** Those that carry requests, and what each had read when it was ready to. */
  readonly #admitted = new Map<Socket, number>();
  /** Beyond the limit; they are open to be told so. */
  readonly #crowded = new WeakSet<Socket>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** A connection was made. False: it cannot even be told that there are too many, and was closed. */
  opened(socket: Socket): boolean {
    this.#open.add(socket);
    socket.on("close", () => this.#open.delete(socket));
    if (this.#open.size <= this.limit + MAX_CROWDED) return true;
    socket.destroy();
    return false;
  }

  /** A connection can carry requests from now on. */
  ready(socket: Socket): void {
    if (socket.destroyed) return;
    if (this.#admitted.size < this.limit) {
      this.#admitted.set(socket, socket.bytesRead);
      socket.on("close", () => this.#admitted.delete(socket));
    } else {
      this.#crowded.add(socket);
      const timer = setTimeout(() => socket.destroy(), CROWDED_MS).unref();
      socket.once("close", () => clearTimeout(timer));
    }
  }

  /**
   * Whether a connection is one too many. It is told so when it has sent a request: an answer that comes before that is
   * taken for an error, and lost.
   */
  isCrowded(socket: Socket): boolean {
    return this.#crowded.has(socket);
  }

  /** Clients and proxies open connections in advance; closes those that have carried nothing yet. */
  closeUnused(): void {
    for (const [socket, bytesBefore] of this.#admitted) if (socket.bytesRead === bytesBefore) socket.destroy();
  }

  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** Connections beyond the limit that are answered; further ones are closed without a word. */
const MAX_CROWDED = 256;
/** What a client that is to be turned away may take to send its request. */
const CROWDED_MS = 5_000;
