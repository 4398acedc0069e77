import type { ServerResponse } from "node:http";
import type { Engine } from "./engine.ts";
import { breakConnection, EventStream, sendJson } from "./exchange.ts";
import { badRequest, engineDead, Failure, scriptedFailure } from "./failure.ts";
import type { Fault } from "./faults.ts";
import type { AnswerFormat, Generation, GenerationApi, Usage } from "./generation.ts";
import { type Job, type JobListener, totalUsage } from "./job.ts";

/** One inference request being answered. */
export interface Exchange {
  readonly engine: Engine;
  readonly response: ServerResponse;
  /** Unique part of the answer's id. */
  readonly id: string;
  /** The API's error body. */
  failureBody(failure: Failure): object;
}

export function refuse(exchange: Exchange, failure: Failure, headers?: object): void {
  sendJson(exchange.response, failure.status, exchange.failureBody(failure), headers);
}

/** Generates and answers, as a stream or in one piece. A failure: nothing was answered yet. */
export function serveGeneration(exchange: Exchange, api: GenerationApi, generation: Generation): Failure | undefined {
  const { engine, response } = exchange;
  const plans = engine.planGeneration(generation);
  if (plans instanceof Failure) return plans;
  const fault = engine.faults.strike(generation.hasStreamOptions);
  if (strikesAtOnce(exchange, fault, generation.isStreaming)) return undefined;
  const format = api.format(generation, {
    id: exchange.id,
    model: engine.model,
    createdSeconds: Math.floor(Date.now() / 1000),
  });
  const shape = { format, expected: plans.length, choicesPerPrompt: generation.choicesPerPrompt };
  const listener = generation.isStreaming
    ? new StreamedAnswer(exchange, fault, shape)
    : collecting(plans.length, (jobs) => {
        sendWhole(exchange, fault, format.whole(totalUsage(jobs, generation.choicesPerPrompt), jobs));
      });
  abortOnClose(engine, response, engine.start(plans, listener));
  return undefined;
}

/** Computes prompts and answers in one piece with what `answer` makes of the usage. A failure: nothing was answered yet. */
export function servePrefill(
  exchange: Exchange,
  prompts: readonly Uint32Array[],
  answer: (usage: Usage) => object,
): Failure | undefined {
  const { engine, response } = exchange;
  const plans = engine.planPrefill(prompts);
  if (plans instanceof Failure) return plans;
  const fault = engine.faults.strike(false);
  if (strikesAtOnce(exchange, fault, false)) return undefined;
  const listener = collecting(plans.length, (jobs) => sendWhole(exchange, fault, answer(totalUsage(jobs, 1))));
  abortOnClose(engine, response, engine.start(plans, listener));
  return undefined;
}

/** A response closes when the client leaves, when a fault cuts it and when it is complete; then nothing is left to stop. */
function abortOnClose(engine: Engine, response: ServerResponse, jobs: readonly Job[]): void {
  response.on("close", () => engine.abort(jobs));
}

/** True: the fault has taken the request, nothing is to be computed. */
function strikesAtOnce(exchange: Exchange, fault: Fault | undefined, isStreaming: boolean): boolean {
  switch (fault?.kind) {
    case "status":
      refuse(
        exchange,
        scriptedFailure(fault.value),
        fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) },
      );
      return true;
    case "refuse-stream-options":
      refuse(exchange, badRequest("stream_options: extra fields are not permitted."));
      return true;
    case "hold":
      return true;
    case "freeze":
      if (!isStreaming) exchange.engine.driver.freeze(fault.value);
      return false;
    default:
      return false;
  }
}

/** Answers in one piece, or plays the fault in its place. */
function sendWhole(exchange: Exchange, fault: Fault | undefined, body: object): void {
  const { response } = exchange;
  switch (fault?.kind) {
    case "stall":
      response.writeHead(200, { "content-type": "application/json" });
      response.flushHeaders();
      return;
    case "reset":
    case "fin":
      breakConnection(response, fault.kind);
      return;
    case "error":
      refuse(exchange, engineDead());
      return;
    default:
      sendJson(response, 200, body);
  }
}

/** Waits for `expected` jobs and hands them over in their own order. */
function collecting(expected: number, complete: (jobs: readonly Job[]) => void): JobListener {
  const ended: Job[] = [];
  return {
    ended(job) {
      ended.push(job);
      if (ended.length === expected) complete(ended.sort((a, b) => a.index - b.index));
    },
  };
}

interface AnswerShape {
  readonly format: AnswerFormat;
  readonly expected: number;
  readonly choicesPerPrompt: number;
}

/** Turns the progress of the jobs into events. */
class StreamedAnswer implements JobListener {
  readonly #stream: EventStream;
  readonly #format: AnswerFormat;
  readonly #whole: JobListener;

  constructor({ engine, response }: Exchange, fault: Fault | undefined, shape: AnswerShape) {
    const { format } = shape;
    this.#format = format;
    this.#stream = new EventStream(response, fault, {
      failureEvents: () => format.failure(engineDead()),
      freeze: (durationMs) => engine.driver.freeze(durationMs),
    });
    this.#whole = collecting(shape.expected, (jobs) => {
      this.#sendAll(format.ending(totalUsage(jobs, shape.choicesPerPrompt), jobs));
      this.#stream.end();
    });
    this.#sendAll(format.opening());
  }

  started(job: Job): void {
    this.#sendAll(this.#format.choiceOpening(job));
  }

  piece(job: Job, piece: string): void {
    this.#stream.send(this.#format.piece(job, piece));
  }

  ended(job: Job): void {
    this.#sendAll(this.#format.choiceEnd(job));
    this.#whole.ended(job);
  }

  #sendAll(events: readonly string[]): void {
    for (const event of events) this.#stream.send(event);
  }
}
