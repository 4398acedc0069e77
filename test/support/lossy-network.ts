import type { Random } from "../../src/core/index.ts";
import type { ExchangeListener, ExchangeMessage, WorkExchange } from "../../src/runtime/index.ts";

/** How bad a network is. */
export interface NetworkFaults {
  /** Share of the messages that never arrive, 0 to 1. */
  readonly loss: number;
  /** Share of those that arrive twice, 0 to 1. */
  readonly duplication: number;
  /** Each takes any time up to this one: later ones overtake earlier ones. */
  readonly maxDelayMs: number;
}

interface Letter {
  readonly atMs: number;
  readonly to: Node;
  readonly message: ExchangeMessage;
}

/** Nodes that reach each other by messages in virtual time. */
export class LossyNetwork {
  faults: NetworkFaults;
  readonly #random: Random;
  readonly #nodes = new Map<string, Node>();
  #letters: Letter[] = [];
  #nowMs = 0;

  constructor(random: Random, faults: NetworkFaults) {
    this.#random = random;
    this.faults = faults;
  }

  /** One more node. A node of that name that was there before is cut off, without a word to the others. */
  join(name: string): WorkExchange {
    const node = new Node(name, (message) => this.#send(name, message));
    this.#nodes.set(name, node);
    return node;
  }

  /** The node is gone. @param isTold The others are told. */
  cut(name: string, isTold: boolean): void {
    this.#nodes.delete(name);
    if (isTold) for (const node of this.#nodes.values()) node.listener?.left(name);
  }

  /** Hands out what has arrived by then. */
  moveTo(nowMs: number): void {
    this.#nowMs = nowMs;
    const arrived = this.#letters.filter(({ atMs }) => atMs <= nowMs).sort((one, other) => one.atMs - other.atMs);
    this.#letters = this.#letters.filter(({ atMs }) => atMs > nowMs);
    for (const { to, message } of arrived) if (this.#nodes.get(to.self) === to) to.listener?.received(message);
  }

  #send(from: string, message: ExchangeMessage): void {
    for (const [name, to] of this.#nodes) {
      if (name === from || this.#random.next() < this.faults.loss) continue;
      this.#post(to, message);
      if (this.#random.next() < this.faults.duplication) this.#post(to, message);
    }
  }

  #post(to: Node, message: ExchangeMessage): void {
    this.#letters.push({ atMs: this.#nowMs + this.#random.next() * this.faults.maxDelayMs, to, message });
  }
}

class Node implements WorkExchange {
  readonly self: string;
  readonly isReady = true;
  listener: ExchangeListener | undefined;
  readonly #send: (message: ExchangeMessage) => void;

  constructor(self: string, send: (message: ExchangeMessage) => void) {
    this.self = self;
    this.#send = send;
  }

  publish(message: ExchangeMessage): void {
    this.#send(message);
  }

  subscribe(listener: ExchangeListener): void {
    this.listener = listener;
  }

  close(): void {
    this.listener = undefined;
  }
}
