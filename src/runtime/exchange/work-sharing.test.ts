import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SharedWork } from "../../core/index.ts";
import { createLog } from "../log.ts";
import type { ExchangeListener, ExchangeMessage, WorkExchange } from "./work-exchange.ts";
import { type SharedPool, WorkSharing } from "./work-sharing.ts";

const log = createLog({ level: "silent", format: "json" });

/** A pool that has news when it is told so, and notes what it is to adopt. */
class NotingPool implements SharedPool {
  readonly name: string;
  hasNews = false;
  readonly adopted: [string, SharedWork | undefined][] = [];
  readonly balancer: SharedPool["balancer"];

  constructor(name: string) {
    this.name = name;
    this.balancer = {
      share: () => workOf(true),
      shareChanges: () => (this.hasNews ? workOf(false) : undefined),
      adopt: (from, work) => this.adopted.push([from, work]),
    };
  }
}

function workOf(isWhole: boolean): SharedWork {
  return { sequence: 1, isWhole, isPrompt: true, endpoints: {}, cache: [] };
}

class NotingExchange implements WorkExchange {
  readonly self = "me";
  isReady = true;
  isClosed = false;
  readonly published: ExchangeMessage[] = [];
  listener: ExchangeListener | undefined;

  publish(message: ExchangeMessage): void {
    this.published.push(message);
  }

  subscribe(listener: ExchangeListener): void {
    this.listener = listener;
  }

  close(): void {
    this.isClosed = true;
  }
}

function start() {
  const exchange = new NotingExchange();
  const pools = [new NotingPool("chat"), new NotingPool("code")] as const;
  const clock = { nowMs: (): number => Date.now() };
  const sharing = new WorkSharing({ exchange, clock, log, pools: () => pools });
  const hear = (sequence: number, message: Partial<ExchangeMessage> = {}): void =>
    exchange.listener?.received({
      ...{ from: "other", life: 1, sequence, isWhole: true, pools: new Map(), keys: new Map() },
      ...message,
    });
  return { exchange, sharing, chat: pools[0], code: pools[1], hear };
}

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

describe("what is told", () => {
  it("is all at first, then what changed as it does, and all again every half second", () => {
    const { exchange, sharing, chat } = start();
    sharing.start();
    expect(exchange.published).toMatchObject([{ from: "me", sequence: 1, isWhole: true }]);
    expect([...(exchange.published[0]?.pools.keys() ?? [])]).toEqual(["chat", "code"]);
    vi.advanceTimersByTime(100);
    expect(exchange.published).toHaveLength(1);
    chat.hasNews = true;
    vi.advanceTimersByTime(10);
    chat.hasNews = false;
    expect(exchange.published.slice(1)).toMatchObject([{ sequence: 2, isWhole: false }]);
    expect([...(exchange.published[1]?.pools.keys() ?? [])]).toEqual(["chat"]);
    vi.advanceTimersByTime(390);
    expect(exchange.published.slice(2)).toMatchObject([{ sequence: 3, isWhole: true }]);
    sharing.close();
  });

  it("is what keys used, too", () => {
    const { exchange, sharing } = start();
    sharing.start();
    sharing.keys.used("team", 1, 10);
    vi.advanceTimersByTime(10);
    expect(exchange.published[1]?.keys).toEqual(new Map([["team", { requests: 1, tokens: 10 }]]));
    expect(exchange.published[1]?.pools.size).toBe(0);
    sharing.close();
  });

  it("waits until the exchange takes it", () => {
    const { exchange, sharing, chat } = start();
    sharing.start();
    exchange.isReady = false;
    chat.hasNews = true;
    vi.advanceTimersByTime(1000);
    expect(exchange.published).toHaveLength(1);
    exchange.isReady = true;
    vi.advanceTimersByTime(10);
    expect(exchange.published).toHaveLength(2);
    sharing.close();
  });

  it("is all as soon as another node is met", () => {
    const { exchange, sharing, hear } = start();
    sharing.start();
    hear(1);
    vi.advanceTimersByTime(10);
    expect(exchange.published.map(({ isWhole }) => isWhole)).toEqual([true, true]);
    hear(2);
    vi.advanceTimersByTime(10);
    expect(exchange.published).toHaveLength(2);
    sharing.close();
  });

  it("ends with it", () => {
    const { exchange, sharing } = start();
    sharing.start();
    sharing.close();
    sharing.close();
    vi.advanceTimersByTime(5000);
    expect([exchange.published.length, exchange.isClosed, vi.getTimerCount()]).toEqual([1, true, 0]);
  });
});

describe("what is heard", () => {
  it("goes to the pools that it names, and a whole message to the others too", () => {
    const { chat, code, hear } = start();
    const [all, changed] = [workOf(true), workOf(false)];
    hear(1, {
      pools: new Map([
        ["chat", all],
        ["elsewhere", all],
      ]),
    });
    hear(2, { isWhole: false, pools: new Map([["code", changed]]) });
    expect(chat.adopted).toEqual([["other", all]]);
    expect(code.adopted).toEqual([
      ["other", undefined],
      ["other", changed],
    ]);
  });

  it("is not what came late, or twice, or what it said itself", () => {
    const { chat, hear } = start();
    for (const sequence of [5, 5, 4, 6]) hear(sequence);
    hear(7, { from: "me" });
    expect(chat.adopted).toHaveLength(2);
  });

  it("begins with all that a node has", () => {
    const { sharing, chat, hear } = start();
    hear(8, { isWhole: false, pools: new Map([["chat", workOf(false)]]) });
    expect([chat.adopted, sharing.peers]).toEqual([[], []]);
    hear(9);
    expect(sharing.peers).toEqual([{ name: "other", ageMs: 0 }]);
  });

  it("is given up when the node is told to be gone, once", () => {
    const { exchange, sharing, chat, code, hear } = start();
    hear(1, { pools: new Map([["chat", workOf(true)]]) });
    exchange.listener?.left("other");
    exchange.listener?.left("other");
    exchange.listener?.left("stranger");
    for (const { adopted } of [chat, code]) expect(adopted.slice(1)).toEqual([["other", undefined]]);
    expect(sharing.peers).toEqual([]);
  });

  it("is given up when the node falls silent", () => {
    const { sharing, chat, hear } = start();
    sharing.start();
    hear(1, { pools: new Map([["chat", workOf(true)]]) });
    vi.advanceTimersByTime(1500);
    expect(sharing.peers).toEqual([{ name: "other", ageMs: 1500 }]);
    vi.advanceTimersByTime(10);
    expect(sharing.peers).toEqual([]);
    expect(chat.adopted.at(-1)).toEqual(["other", undefined]);
    sharing.close();
  });

  it("is kept by who stood still itself, until it has read what came in the meantime", () => {
    const { sharing, hear } = start();
    sharing.tick();
    hear(1);
    vi.setSystemTime(Date.now() + 60_000);
    sharing.tick();
    expect(sharing.peers).toHaveLength(1);
    hear(2);
    sharing.tick();
    expect(sharing.peers).toEqual([{ name: "other", ageMs: 0 }]);
  });

  it("of a node that began anew takes the place of what it had", () => {
    const { chat, hear } = start();
    const all = workOf(true);
    hear(9, { pools: new Map([["chat", all]]) });
    hear(1, { life: 2, pools: new Map([["chat", all]]) });
    expect(chat.adopted).toEqual([
      ["other", all],
      ["other", undefined],
      ["other", all],
    ]);
    hear(2, { life: 2, isWhole: false, pools: new Map([["chat", all]]) });
    expect(chat.adopted).toHaveLength(4);
    // What the former one said last comes late, and what a third one says before all that it has.
    hear(10, { life: 1, pools: new Map([["chat", all]]) });
    hear(1, { life: 3, isWhole: false, pools: new Map([["chat", all]]) });
    expect(chat.adopted).toHaveLength(4);
    hear(3, { life: 2, isWhole: false, pools: new Map([["chat", all]]) });
    expect(chat.adopted).toHaveLength(5);
  });

  it("of keys is what they used elsewhere since the node was met", () => {
    const { sharing, hear } = start();
    const heard: unknown[] = [];
    sharing.keys.onUsedElsewhere((keyId, use) => heard.push([keyId, use]));
    hear(1, { keys: new Map([["team", { requests: 100, tokens: 9 }]]) });
    hear(2, { isWhole: false, keys: new Map([["team", { requests: 102, tokens: 10 }]]) });
    expect(heard).toEqual([["team", { requests: 2, tokens: 1 }]]);
  });
});
