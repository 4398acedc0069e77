import type { RequestProfile } from "../../core/index.ts";
import type { AnswerTokens } from "../answer/answer-relay.ts";
import type { RequestOutcome } from "../outcome.ts";
import type { Caller } from "./access.ts";
import { TAKEN, type Taking } from "./token-bucket.ts";

/** What one request takes of its caller's tokens: what it is expected to use, until it is known what it did use. */
export class TokenCharge {
  readonly #caller: Caller;
  #promptTokens = 0;
  #taken = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  take({ promptTokens, output, maxOutputTokens = Number.POSITIVE_INFINITY }: RequestProfile): Taking {
    const expected = promptTokens + Math.min(output.meanTokens, maxOutputTokens);
    const taking = this.#caller.takeTokens(expected);
    if (!taking.isTaken) return taking;
    this.#taken = expected;
    this.#promptTokens = promptTokens;
    return TAKEN;
  }

  /**
   * The request is over. An endpoint that began on it has read its prompt, also for a client that left; one that
   * refused it has not.
   * @param tokens Undefined: it was answered by no endpoint.
   */
  settle(outcome: RequestOutcome, tokens: AnswerTokens | undefined): void {
    const wasRead = tokens !== undefined && outcome !== "upstream_4xx" && outcome !== "upstream_5xx";
    const promptTokens = tokens?.promptTokens ?? (wasRead ? this.#promptTokens : 0);
    this.#caller.settleTokens(this.#taken, promptTokens + (tokens?.outputTokens ?? 0));
    this.#taken = 0;
  }
}
