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
  answered = 0;
  failed = 0;

  constructor(options: { url: string; model: string; random: Random; requestsPerSecond: number }) {
    this.#url = options.url;
    this.#model = options.model;
    this.#random = options.random;
    this.#meanGapMs = 1000 / options.requestsPerSecond;
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
    try {
      const response = await fetch(`${this.#url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-session-id": conversation.id },
        body: JSON.stringify({ model: this.#model, stream: true, messages: conversation.messages }),
        signal: this.#stopped.signal,
      });
      await response.text();
      if (response.ok) this.answered++;
      else this.failed++;
    } catch {
      if (!this.#stopped.signal.aborted) this.failed++;
    } finally {
      conversation.isBusy = false;
    }
  }
}

interface Conversation {
  readonly id: string;
  isBusy: boolean;
  readonly messages: { role: string; content: string }[];
}

const LONG_SHARE = 0.15;
const SHORT_WORDS = 60;
const LONG_WORDS = 6000;
const MAX_CONVERSATIONS = 60;
const WORDS = ["keel", "harbour", "ballast", "current", "signal", "lantern", "anchor", "tide", "compass", "sail"];

function prose(random: Random, words: number): string {
  const text: string[] = [];
  for (let i = 0; i < words; i++) text.push(WORDS[Math.floor(random.next() * WORDS.length)] as string);
  return text.join(" ");
}
