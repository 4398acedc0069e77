import { type Random, seededRandom } from "../../src/core/index.ts";
import { TEXT_APIS, type TextApi } from "../support/text-api.ts";
import { type Call, type Manner, type Question, TextClient } from "../support/text-call.ts";

/** Whom the load goes to, and how much of it. */
export interface SteadyLoadPlan {
  readonly origin: string;
  readonly model: string;
  readonly requestsPerSecond: number;
  readonly seed: number;
}

/** How the requests of a load ended so far. */
export type EndCounts = Partial<Record<Call["ending"], number>>;

/**
 * Requests that come at random moments at a steady rate, whatever becomes of those before. No two have the same prompt
 * and hardly two the same session, so that whatever is kept for each would show.
 */
export class SteadyLoad {
  readonly endings: EndCounts = {};
  /** One line for each of the first that failed. */
  readonly failures: string[] = [];
  readonly #plan: SteadyLoadPlan;
  readonly #random: Random;
  /** Clients that have nothing under way. */
  readonly #idle: TextClient[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #sent = 0;

  constructor(plan: SteadyLoadPlan) {
    this.#plan = plan;
    this.#random = seededRandom(plan.seed);
    this.resume();
  }

  get sent(): number {
    return this.#sent;
  }

  /** Sends no more until `resume`; resolves when nothing is under way and all connections are closed. */
  async pause(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all(this.#underWay);
    for (const client of this.#idle.splice(0)) client.close();
  }

  resume(): void {
    this.#dueMs = performance.now();
    this.#next();
  }

  #next(): void {
    const nowMs = performance.now();
    for (; this.#dueMs <= nowMs; this.#dueMs += this.#gapMs()) this.#send();
    this.#timer = setTimeout(() => this.#next(), this.#dueMs - nowMs);
  }

  #send(): void {
    const { origin, model } = this.#plan;
    const client = this.#idle.pop() ?? new TextClient(origin, model);
    const asked = client.ask(`soak-${++this.#sent}`, this.#question(), this.#manner()).then((call) => {
      this.#count(call);
      this.#idle.push(client);
      this.#underWay.delete(asked);
    });
    this.#underWay.add(asked);
  }

  #count({ id, ending, status, cause, question }: Call): void {
    this.endings[ending] = (this.endings[ending] ?? 0) + 1;
    if (ending === "whole" || ending === "left" || this.failures.length >= MAX_FAILURES) return;
    this.failures.push(`${id} ${question.api.name}: ${ending} ${status} ${cause}`);
  }

  #question(): Question {
    const api = TEXT_APIS[this.#below(TEXT_APIS.length)] as TextApi;
    const outputTokens = 4 + this.#below(40);
    const prompt = `${SYSTEM_PROMPT} ${Array.from({ length: 1 + this.#below(60) }, () => this.#below(1e6)).join(" ")}`;
    const body = { ...api.body(prompt, outputTokens), user: `user ${this.#below(1e9)}` };
    return { api, isStream: this.#random.next() < 0.6, body, outputTokens, texts: undefined };
  }

  /** A few leave, as clients do. */
  #manner(): Manner {
    return this.#random.next() < 0.03 ? { leavesAfterMs: 500 * this.#random.next() } : {};
  }

  #gapMs(): number {
    return (-1000 * Math.log(1 - this.#random.next())) / this.#plan.requestsPerSecond;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }
}

const MAX_FAILURES = 20;
const SYSTEM_PROMPT = "You keep an even keel, whatever the weather. ".repeat(12);
