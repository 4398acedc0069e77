import { connect } from "node:net";
import { type Random, seededRandom } from "../../src/core/index.ts";
import { type Call, type Manner, type Question, TextClient } from "../support/text-call.ts";
import { sleep } from "./strike.ts";

/** Whom clients ask, and what. */
export interface Crowd {
  readonly origin: string;
  readonly model: string;
  readonly clients: number;
  readonly questions: readonly Question[];
  /** Long enough that nobody's socket holds them: for readers that do not keep up. */
  readonly longQuestions: readonly Question[];
  readonly seed: number;
  /** Between an answer and the next question, at most. */
  readonly thinkMs: number;
}

/** What a crowd did. */
export interface CrowdRecord {
  /** Every request whose head was sent. */
  readonly calls: Call[];
  /** Requests that were given up in the middle of their heads. */
  unborn: number;
}

/** Clients that ask one question after the other until they are told to stop, most of them well-behaved. */
export class ClientCrowd {
  readonly record: CrowdRecord = { calls: [], unborn: 0 };
  readonly #crowd: Crowd;
  readonly #prefix: string;
  #isStopping = false;
  #asked = 0;
  readonly #done: Promise<unknown>;

  /** @param name Begins the ids of its requests. */
  constructor(crowd: Crowd, name: string) {
    this.#crowd = crowd;
    this.#prefix = name;
    this.#done = Promise.all(Array.from({ length: crowd.clients }, (_, index) => this.#live(index)));
  }

  /** Lets what is under way come to its end. */
  async stop(): Promise<CrowdRecord> {
    this.#isStopping = true;
    await this.#done;
    return this.record;
  }

  async #live(index: number): Promise<void> {
    const { origin, model, seed, thinkMs } = this.#crowd;
    const random = seededRandom(seed * 10_007 + index);
    const client = new TextClient(origin, model);
    await sleep(random.next() * thinkMs);
    while (!this.#isStopping) {
      await this.#ask(client, random);
      await sleep(random.next() * thinkMs);
    }
    client.close();
  }

  async #ask(client: TextClient, random: Random): Promise<void> {
    const { questions, longQuestions, origin } = this.#crowd;
    const id = `${this.#prefix}-${++this.#asked}`;
    const question = pick(questions, random);
    const kind = random.next();
    if (kind < 0.01) {
      await leaveInHead(origin);
      this.record.unborn++;
    } else if (kind < 0.02) this.record.calls.push(await leaveInBody(origin, id, question));
    else if (kind < 0.023) await this.#keep(client.ask(id, pick(longQuestions, random), slowReader(random)));
    else await this.#keep(client.ask(id, question, mannerOf(question, random)));
  }

  async #keep(call: Promise<Call>): Promise<void> {
    this.record.calls.push(await call);
  }
}

/** One in twelve leaves: at once, while it waits, or in the middle of its answer. */
function mannerOf({ isStream }: Question, random: Random): Manner {
  const kind = random.next();
  if (kind < 0.02) return { leavesAfterMs: random.next() * 20 };
  if (kind < 0.05) return { leavesAfterMs: random.next() * 1500 };
  if (kind < 0.08 && isStream) return { leavesAfterEvents: Math.floor(random.next() * 10) };
  return {};
}

/** One in three stops reading for longer than the balancer waits for a client; the others take some seconds. */
function slowReader(random: Random): Manner {
  if (random.next() < 0.33) return { pause: { bytes: 32 * 1024, ms: 10_000 }, leavesAfterMs: 30_000 };
  return { pause: { bytes: 32 * 1024, ms: 300 } };
}

function pick<Item>(items: readonly Item[], random: Random): Item {
  return items[Math.floor(random.next() * items.length)] as Item;
}

/** The request's head is never whole. */
function leaveInHead(origin: string): Promise<void> {
  return writeAndLeave(origin, "POST /v1/chat/completions HTTP/1.1\r\nhost: chaos\r\ncontent-le");
}

async function leaveInBody(origin: string, id: string, question: Question): Promise<Call> {
  const sentAtMs = performance.now();
  const head = `POST ${question.api.path} HTTP/1.1\r\nhost: chaos\r\nx-request-id: ${id}\r\ncontent-length: 1000\r\n\r\n`;
  await writeAndLeave(origin, `${head}{"model":`);
  const endedAtMs = performance.now();
  const nothing = { status: 0, cause: "", isOwnRefusal: false, endpoint: undefined, texts: [] };
  return { id, question, sentAtMs, endedAtMs, ending: "left", ...nothing };
}

function writeAndLeave(origin: string, text: string): Promise<void> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(text, () => socket.end()));
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    // What may come back is nobody's to read.
    socket.resume();
  });
}
