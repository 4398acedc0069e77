import type { ServerResponse } from "node:http";

/**
 * The client's side of an answer. Knows whether anything was sent, whether the client keeps up, and
 * how to end an answer that went wrong: never in a way that looks whole.
 */
export class ClientStream {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** From here on nothing can be taken back: the answer is this endpoint's. */
  get isCommitted(): boolean {
    return this.#response.headersSent;
  }

  begin(status: number, headers: string[]): void {
    this.#response.writeHead(status, headers);
    // The client learns at once that it was accepted; the first token may take long.
    this.#response.flushHeaders();
  }

  /** False: the client is behind; `onDrain` tells when it has caught up. */
  write(bytes: Buffer): boolean {
    return bytes.length === 0 || this.#response.write(bytes);
  }

  onDrain(resume: () => void): void {
    this.#response.once("drain", resume);
  }

  end(): void {
    this.#response.end();
  }

  /** A whole answer of the balancer's own. */
  answer(status: number, headers: Readonly<Record<string, string>>, body: Buffer): void {
    this.#response.writeHead(status, headers);
    this.#response.end(body);
  }

  /** Cuts the connection inside the body, after `lastWords` if there are any. */
  break(lastWords?: Buffer): void {
    if (lastWords === undefined || this.#response.destroyed) this.#response.destroy();
    else this.#response.write(lastWords, () => this.#response.destroy());
  }
}
