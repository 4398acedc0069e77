import type { Socket } from "node:net";
import type { Dispatcher } from "undici";

/**
 * Holds back what a connection brings while its handler waits, the connection's end included. undici pauses its parser
 * instead, and throws, where nobody can catch it, if the connection ends or breaks meanwhile.
 */
export class Gate {
  readonly #socket: Socket;
  /** Undefined: nobody, it is open. */
  #shutBy: Dispatcher.DispatchController | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    const read = socket.read;
    // An end is told of by the `read` that finds nothing more.
    socket.read = (bytes) => (this.#shutBy === undefined ? read.call(socket, bytes) : null);
  }

  /** What was read already still comes. */
  shut(by: Dispatcher.DispatchController): void {
    this.#shutBy = by;
    this.#socket.pause();
  }

  open(by: Dispatcher.DispatchController): void {
    if (this.#shutBy !== by) return;
    this.#shutBy = undefined;
    // Not at once, since undici may be in the middle of what was read last.
    process.nextTick(() => this.#socket.emit("readable"));
  }
}

/** As undici's own, but it pauses the connection and not undici. */
export class GatedController implements Dispatcher.DispatchController {
  readonly #controller: Dispatcher.DispatchController;
  readonly #gate: Gate;
  #isPaused = false;
  /** What is to be done once it is not paused any more; undefined: nothing. */
  #then: (() => void) | undefined;

  constructor(controller: Dispatcher.DispatchController, gate: Gate) {
    this.#controller = controller;
    this.#gate = gate;
  }

  get aborted(): boolean {
    return this.#controller.aborted;
  }

  get paused(): boolean {
    return this.#isPaused;
  }

  get reason(): Error | null {
    return this.#controller.reason;
  }

  /** Does so once its handler goes on, or has given up. */
  whenResumed(then: () => void): void {
    this.#then = then;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
    this.#goOn();
  }

  pause(): void {
    this.#isPaused = true;
    this.#gate.shut(this);
  }

  resume(): void {
    this.#isPaused = false;
    this.#gate.open(this);
    this.#goOn();
  }

  #goOn(): void {
    const then = this.#then;
    this.#then = undefined;
    then?.();
  }
}
