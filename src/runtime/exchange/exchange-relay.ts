import type { ExchangePort } from "./exchange-port.ts";
import { isEnvelope, type ProcessEnvelope } from "./process-envelope.ts";

/** The primary's part: passes what one worker says on to all others, unread, and tells them who is gone. */
export class ExchangeRelay {
  readonly #ways = new Map<string, Way>();

  /** @param node The name under which the worker's `ProcessExchange` speaks. One of that name that was there before is detached. */
  attach(node: string, port: ExchangePort): void {
    this.detach(node);
    const way = new Way(port);
    this.#ways.set(node, way);
    port.onMessage((message) => {
      if (isEnvelope(message) && message.exchange === "message") this.#toOthers(way, message);
    });
  }

  /** The worker is gone, or about to go; the others give up what they know of its work. Unknown names do nothing. */
  detach(node: string): void {
    const way = this.#ways.get(node);
    if (way === undefined) return;
    this.#ways.delete(node);
    way.close();
    this.#toOthers(way, { exchange: "left", node });
  }

  #toOthers(from: Way, message: ProcessEnvelope): void {
    for (const way of this.#ways.values()) if (way !== from) way.send(message);
  }
}

/** To one worker. */
class Way {
  readonly #port: ExchangePort;
  #unsent = 0;

  constructor(port: ExchangePort) {
    this.#port = port;
  }

  send(message: ProcessEnvelope): void {
    // A worker that stands still must not fill the primary's memory: what it misses the next whole message makes good.
    if (message.exchange === "message" && this.#unsent >= MAX_UNSENT) return;
    this.#unsent++;
    this.#port.send(message, () => {
      this.#unsent--;
    });
  }

  close(): void {
    this.#port.close();
  }
}

/** Two seconds' worth of one other worker's messages, some megabytes at the most. */
const MAX_UNSENT = 200;
