import type { Clock } from "../clock.ts";
import type { LiveBalancer } from "../live-balancer.ts";
import type { Log } from "../log.ts";
import { KeyUses } from "./key-uses.ts";
import type { ExchangeListener, ExchangeMessage, WorkExchange } from "./work-exchange.ts";

/** A pool as far as others are told of it. */
export interface SharedPool {
  /** The same on all nodes. */
  readonly name: string;
  readonly balancer: Pick<LiveBalancer, "share" | "shareChanges" | "adopt">;
}

/** What sharing needs. */
export interface SharingParts {
  readonly exchange: WorkExchange;
  readonly clock: Clock;
  readonly log: Log;
  /** Those that have work now. */
  readonly pools: () => readonly SharedPool[];
}

/** Another node, as far as it is heard. */
export interface SharingPeer {
  readonly name: string;
  /** Since its last message. */
  readonly ageMs: number;
}

/**
 * Several nodes in front of the same endpoints, each with the work of all before its eyes: tells the others what changed
 * here every few ms, and everything now and then, and takes on what they tell. A node that is not heard any more is
 * gone, and its work with it.
 */
export class WorkSharing implements ExchangeListener {
  /** What keys use over all nodes. */
  readonly keys: KeyUses = new KeyUses();
  readonly #parts: SharingParts;
  readonly #life = crypto.getRandomValues(new Uint32Array(1))[0] as number;
  readonly #peers = new Map<string, Peer>();
  #sequence = 0;
  /** When everything is told again. */
  #wholeAtMs = Number.NEGATIVE_INFINITY;
  #tickedAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** Hears from now on. */
  constructor(parts: SharingParts) {
    this.#parts = parts;
    parts.exchange.subscribe(this);
  }

  /** Those that are heard now. */
  get peers(): readonly SharingPeer[] {
    const nowMs = this.#parts.clock.nowMs();
    return [...this.#peers].map(([name, { heardAtMs }]) => ({ name, ageMs: nowMs - heardAtMs }));
  }

  /** Tells, every few ms until `close`. */
  start(): void {
    this.tick();
    this.#timer = setInterval(() => this.tick(), INTERVAL_MS).unref();
  }

  /** Tells nothing and hears nothing any more; what was heard stays as it is. May be called twice. */
  close(): void {
    clearInterval(this.#timer);
    this.#parts.exchange.close();
  }

  /** What is due by now: peers that fell silent are given up, and what is news is told. */
  tick(): void {
    const nowMs = this.#parts.clock.nowMs();
    // Who stood still itself has heard nobody for as long: what came in the meantime is read first.
    if (nowMs - this.#tickedAtMs < WHOLE_MS) this.#giveUpSilent(nowMs);
    this.#tickedAtMs = nowMs;
    if (this.#parts.exchange.isReady) this.#tell(nowMs);
  }

  received(message: ExchangeMessage): void {
    const nowMs = this.#parts.clock.nowMs();
    const { from, life, sequence, isWhole } = message;
    const before = this.#peers.get(from);
    const isFirst = before?.life !== life;
    if (from === this.#parts.exchange.self || (!isFirst && sequence <= before.sequence)) return;
    // What it said before it began anew came late.
    if (before?.formerLife === life) return;
    // Of changes alone one would know half: whoever is new here, or to whom this node is, hears all in a moment.
    if (isFirst && !isWhole) return;
    if (before !== undefined && isFirst) this.#giveUp(from, "it began anew");
    if (isFirst) this.#meet(from);
    this.#peers.set(from, { life, sequence, heardAtMs: nowMs, formerLife: isFirst ? before?.life : before.formerLife });
    this.#adopt(message, isFirst, nowMs);
  }

  left(node: string): void {
    if (this.#peers.has(node)) this.#giveUp(node, "its process ended");
  }

  #tell(nowMs: number): void {
    const { exchange, pools } = this.#parts;
    const isWhole = nowMs >= this.#wholeAtMs;
    const works = pools().flatMap(({ name, balancer }) => {
      const work = isWhole ? balancer.share(nowMs) : balancer.shareChanges(nowMs);
      return work === undefined ? [] : [[name, work] as const];
    });
    const keys = this.keys.take(isWhole ? "whole" : "changes");
    if (!isWhole && works.length === 0 && keys.size === 0) return;
    if (isWhole) this.#wholeAtMs = nowMs + WHOLE_MS;
    const sequence = ++this.#sequence;
    exchange.publish({ from: exchange.self, life: this.#life, sequence, isWhole, pools: new Map(works), keys });
  }

  #adopt({ from, isWhole, pools, keys }: ExchangeMessage, isFirst: boolean, nowMs: number): void {
    for (const { name, balancer } of this.#parts.pools()) {
      const work = pools.get(name);
      if (work !== undefined || isWhole) balancer.adopt(from, work, nowMs);
    }
    this.keys.adopt(from, keys, isFirst);
  }

  #meet(from: string): void {
    this.#wholeAtMs = Number.NEGATIVE_INFINITY;
    this.#parts.log.debug({ node: from }, "another node shares the work");
  }

  #giveUpSilent(nowMs: number): void {
    for (const [name, { heardAtMs }] of this.#peers) {
      if (nowMs - heardAtMs > SILENCE_MS) this.#giveUp(name, "it fell silent");
    }
  }

  #giveUp(from: string, why: string): void {
    this.#peers.delete(from);
    this.keys.forget(from);
    const nowMs = this.#parts.clock.nowMs();
    for (const { balancer } of this.#parts.pools()) balancer.adopt(from, undefined, nowMs);
    this.#parts.log.debug({ node: from, why }, "another node is gone");
  }
}

/** What is known of another node. */
interface Peer {
  readonly life: number;
  /** Of its last message. */
  readonly sequence: number;
  readonly heardAtMs: number;
  /** Of the node that bore its name before; undefined: none did. */
  readonly formerLife: number | undefined;
}

/**
 * In the simulator 5, 10 and 20 ms differ by up to 1.3 % of mean end-to-end time (`bench/workers.ts`), while what it costs
 * doubles each time.
 */
const INTERVAL_MS = 10;

/** What is lost is wrong for so long at the most; and whoever has nothing to tell is heard so often. */
const WHOLE_MS = 500;

/** Three whole messages. */
const SILENCE_MS = 3 * WHOLE_MS;
