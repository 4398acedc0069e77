import { decodeMessage, encodeMessage } from "./exchange-codec.ts";
import type { ExchangePort } from "./exchange-port.ts";
import { NumberWriter } from "./number-list.ts";
import { isEnvelope } from "./process-envelope.ts";
import type { ExchangeListener, ExchangeMessage, WorkExchange } from "./work-exchange.ts";

/** Between worker processes of one machine: over the channel to the primary, whose `ExchangeRelay` passes on. */
export class ProcessExchange implements WorkExchange {
  readonly self: string;
  readonly #port: ExchangePort;
  readonly #numbers = new NumberWriter();
  #listener: ExchangeListener | undefined;
  #unsent = 0;
  #isClosed = false;

  constructor(self: string, port: ExchangePort) {
    this.self = self;
    this.#port = port;
    port.onMessage((message) => this.#hear(message));
  }

  /** One at a time: a primary that is slow is told less often, and its channel does not fill up. */
  get isReady(): boolean {
    return !this.#isClosed && this.#unsent === 0;
  }

  publish(message: ExchangeMessage): void {
    if (this.#isClosed) return;
    this.#unsent++;
    this.#port.send({ exchange: "message", bytes: encodeMessage(message, this.#numbers) }, () => {
      this.#unsent--;
    });
  }

  subscribe(listener: ExchangeListener): void {
    this.#listener = listener;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#port.close();
  }

  #hear(envelope: unknown): void {
    if (!isEnvelope(envelope)) return;
    if (envelope.exchange === "left") {
      this.#listener?.left(envelope.node);
      return;
    }
    const message = decodeMessage(envelope.bytes);
    if (message !== undefined) this.#listener?.received(message);
  }
}
