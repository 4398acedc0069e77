import type { Random } from "../../core/index.ts";

/** Sends one conversation turn after another, as a mixed population of users would. */
export class DemoTraffic {
  readonly #url: string;
  readonly #model: string;
  readonly #random: Random;
  readonly #meanGapMs: number;
  readonly #conversations: Conversation[] = [];
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  failed = 0;
  #answered = 0;
  readonly #latest: AnswerTimes[] = [];

  constructor(options: { url: string; model: string; random: Random; requestsPerSecond: number }) {
    this.#url = options.url;
    this.#model = options.model;
    this.#random = options.random;
    this.#meanGapMs = 1000 / options.requestsPerSecond;
  }

  get answered(): number {
    return this.#answered;
  }

  /** Means over the latest answers; undefined: none yet. */
  get times(): AnswerTimes | undefined {
    if (this.#latest.length === 0) return undefined;
    const mean = (of: (times: AnswerTimes) => number): number =>
      this.#latest.reduce((sum, times) => sum + of(times), 0) / this.#latest.length;
    return { firstTokenMs: mean((times) => times.firstTokenMs), wholeMs: mean((times) => times.wholeMs) };
  }

  start(): void {
    const gapMs = -Math.log(1 - this.#random.next()) * this.#meanGapMs;
    this.#timer = setTimeout(() => {
      void this.#send(this.#nextConversation());
      this.start();
    }, gapMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stopped.abort();
  }

  #keep(times: AnswerTimes): void {
    this.#answered++;
    this.#latest.push(times);
    if (this.#latest.length > TIMES_KEPT) this.#latest.shift();
  }

  /** Half of the turns go on with a conversation, whose prompt one endpoint has in its cache. */
  #nextConversation(): Conversation {
    const waiting = this.#conversations.filter((conversation) => !conversation.isBusy);
    const known = waiting[Math.floor(this.#random.next() * waiting.length)];
    if (known !== undefined && this.#random.next() < 0.5) return known;
    const isLong = this.#random.next() < LONG_SHARE;
    const conversation: Conversation = {
      id: `demo-${this.#conversations.length + 1}`,
      isBusy: false,
      messages: [{ role: "system", content: prose(this.#random, isLong ? LONG_WORDS : SHORT_WORDS) }],
    };
    this.#conversations.push(conversation);
    if (this.#conversations.length > MAX_CONVERSATIONS) this.#conversations.shift();
    return conversation;
  }

  async #send(conversation: Conversation): Promise<void> {
    conversation.isBusy = true;
    conversation.messages.push({ role: "user", content: prose(this.#random, SHORT_WORDS) });
    const sentAtMs = performance.now();
    try {
      const response = await fetch(`${this.#url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-session-id": conversation.id },
        body: JSON.stringify({ model: this.#model, stream: true, messages: conversation.messages }),
        signal: this.#stopped.signal,
      });
      const firstTokenAtMs = await readStream(response);
      if (response.ok && firstTokenAtMs !== undefined) {
        this.#keep({ firstTokenMs: firstTokenAtMs - sentAtMs, wholeMs: performance.now() - sentAtMs });
      } else {
        this.failed++;
      }
    } catch {
      if (!this.#stopped.signal.aborted) this.failed++;
    } finally {
      conversation.isBusy = false;
    }
  }
}

/** What users feel of an answer, from sending the request on. */
export interface AnswerTimes {
  readonly firstTokenMs: number;
  readonly wholeMs: number;
}

interface Conversation {
  readonly id: string;
  isBusy: boolean;
  readonly messages: { role: string; content: string }[];
}

/** Reads a stream to its end. @returns when its first event came, which is that of the first token; undefined: never. */
async function readStream({ body }: Response): Promise<number | undefined> {
  let firstTokenAtMs: number | undefined;
  for await (const _ of body ?? []) firstTokenAtMs ??= performance.now();
  return firstTokenAtMs;
}

/** Enough to even out single answers, few enough to follow the traffic. */
const TIMES_KEPT = 100;
const LONG_SHARE = 0.15;
const SHORT_WORDS = 60;
const LONG_WORDS = 3000;
const MAX_CONVERSATIONS = 60;
const WORDS = ["keel", "harbour", "ballast", "current", "signal", "lantern", "anchor", "tide", "compass", "sail"];

function prose(random: Random, words: number): string {
  const text: string[] = [];
  for (let i = 0; i < words; i++) text.push(WORDS[Math.floor(random.next() * WORDS.length)] as string);
  return text.join(" ");
}
