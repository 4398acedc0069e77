import { describe, expect, it } from "vitest";
import type { ExchangePort } from "./exchange-port.ts";
import { ExchangeRelay } from "./exchange-relay.ts";
import { ProcessExchange } from "./process-exchange.ts";
import type { ExchangeMessage } from "./work-exchange.ts";

/** The two ends of a channel between processes. Messages are on their way once it is told to take them. */
class Channel {
  readonly worker: End;
  readonly primary: End;

  constructor() {
    this.worker = new End();
    this.primary = new End();
    this.worker.other = this.primary;
    this.primary.other = this.worker;
  }
}

class End implements ExchangePort {
  other: End | undefined;
  isStuck = false;
  isClosed = false;
  readonly sent: unknown[] = [];
  #listener: ((message: unknown) => void) | undefined;
  #waiting: (() => void)[] = [];

  send(message: unknown, sent: () => void): void {
    this.sent.push(message);
    const take = () => {
      sent();
      this.other?.hear(structuredClone(message));
    };
    if (this.isStuck) this.#waiting.push(take);
    else take();
  }

  /** It moves again. */
  flow(): void {
    this.isStuck = false;
    for (const take of this.#waiting.splice(0)) take();
  }

  hear(message: unknown): void {
    if (!this.isClosed) this.#listener?.(message);
  }

  onMessage(listener: (message: unknown) => void): void {
    this.#listener = listener;
  }

  close(): void {
    this.isClosed = true;
  }
}

function messageOf(from: string, sequence = 1): ExchangeMessage {
  return {
    from,
    life: 1,
    sequence,
    isWhole: true,
    pools: new Map(),
    keys: new Map([["k", { requests: 1, tokens: 2 }]]),
  };
}

/** Workers of one primary, and what each heard. */
function workersOf(...names: readonly string[]) {
  const relay = new ExchangeRelay();
  const workers = names.map((name) => {
    const channel = new Channel();
    relay.attach(name, channel.primary);
    const exchange = new ProcessExchange(name, channel.worker);
    const heard: ExchangeMessage[] = [];
    const left: string[] = [];
    exchange.subscribe({ received: (message) => heard.push(message), left: (node) => left.push(node) });
    return { channel, exchange, heard, left };
  });
  return { relay, workers };
}

type Worker = ReturnType<typeof workersOf>["workers"][number];

describe("workers of one primary", () => {
  it("hear what each other says, and never themselves", () => {
    const { workers } = workersOf("one", "two", "three");
    (workers[1] as Worker).exchange.publish(messageOf("two"));
    expect(workers.map(({ heard }) => heard)).toEqual([[messageOf("two")], [], [messageOf("two")]]);
  });

  it("are told who is gone, and hear it no more", () => {
    const { relay, workers } = workersOf("one", "two", "three");
    const [one, two] = workers as [Worker, Worker];
    relay.detach("one");
    relay.detach("one");
    expect(workers.map(({ left }) => left)).toEqual([[], ["one"], ["one"]]);
    one.exchange.publish(messageOf("one"));
    two.exchange.publish(messageOf("two"));
    expect([two.heard, one.heard]).toEqual([[], []]);
  });

  it("are told that one is gone when another comes under its name", () => {
    const { relay, workers } = workersOf("one", "two");
    const again = new Channel();
    relay.attach("one", again.primary);
    expect((workers[1] as Worker).left).toEqual(["one"]);
    new ProcessExchange("one", again.worker).publish(messageOf("one", 2));
    expect((workers[1] as Worker).heard).toEqual([messageOf("one", 2)]);
  });

  it("do not mind what else goes over their channels", () => {
    const { workers } = workersOf("one", "two");
    const [one, two] = workers as [Worker, Worker];
    const strange = [
      undefined,
      null,
      7,
      "text",
      {},
      { exchange: "message" },
      { exchange: "left" },
      { exchange: "other" },
    ];
    for (const message of [...strange, { exchange: "message", bytes: Buffer.from("no message") }]) {
      one.channel.worker.send(message, () => undefined);
      two.channel.primary.send(message, () => undefined);
    }
    one.channel.worker.send({ exchange: "left", node: "two" }, () => undefined);
    expect([two.heard, two.left]).toEqual([[], []]);
  });

  it("wait with the next message until the last is on its way", () => {
    const { workers } = workersOf("one", "two");
    const [{ channel, exchange }] = workers as [Worker];
    channel.worker.isStuck = true;
    exchange.publish(messageOf("one"));
    expect(exchange.isReady).toBe(false);
    channel.worker.flow();
    expect(exchange.isReady).toBe(true);
  });

  it("say nothing once they are closed, and hear nothing", () => {
    const { workers } = workersOf("one", "two");
    const [one, two] = workers as [Worker, Worker];
    one.exchange.close();
    one.exchange.close();
    expect(one.exchange.isReady).toBe(false);
    one.exchange.publish(messageOf("one"));
    two.exchange.publish(messageOf("two"));
    expect([one.heard, two.heard]).toEqual([[], []]);
  });

  it("that stand still miss what is more than the primary keeps for them, but not who is gone", () => {
    const { relay, workers } = workersOf("one", "two", "three");
    const [one, two, three] = workers as [Worker, Worker, Worker];
    two.channel.primary.isStuck = true;
    for (let i = 1; i <= 1000; i++) one.exchange.publish(messageOf("one", i));
    relay.detach("three");
    expect(three.heard).toHaveLength(1000);
    two.channel.primary.flow();
    expect(two.heard.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
    expect(two.left).toEqual(["three"]);
    one.exchange.publish(messageOf("one", 1001));
    expect(two.heard.at(-1)?.sequence).toBe(1001);
  });
});
