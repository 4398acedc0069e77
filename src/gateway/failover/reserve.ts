import type { AnswerRelay } from "../answer/answer-relay.ts";
import { blameOfError, blameOfStatus, type Failure } from "./failure.ts";

/** Why the client does not see an answer yet. */
export type ReserveReason =
  /** It may be about the option that the balancer added, for which the client did not ask. */
  | "option"
  /** A stream may yet begin with an error. */
  | "first_event"
  /** Another endpoint will be asked, and perhaps does no better. */
  | "fallback"
  /** The head of an answer that is not streamed goes out with its body. */
  | "body";

/**
 * What is to be done with an answer that the client has not seen. `fallback`: another endpoint will be asked, and this
 * one is kept until it is whole. `drop`: likewise, but it is too large to be kept.
 */
export type ReserveStep = "wait" | "open" | "fallback" | "drop";

/** What a reserve goes by, besides the answer. */
export interface ReserveRules {
  /** The balancer added an option to the request. */
  readonly asksForUsage: boolean;
  /** Whether the head of a stream waits for its first event. */
  readonly guardsStreams: boolean;
  /** Whether another endpoint will be asked for that reason. Asked once at most. */
  readonly mayMove: (failure: Failure) => boolean;
}

/** Decides when an answer is shown to the client, and whether it is at all. */
export class Reserve {
  readonly #relay: AnswerRelay;
  readonly #rules: ReserveRules;
  #reason: ReserveReason = "body";
  #failure: Failure = "failed";

  constructor(relay: AnswerRelay, rules: ReserveRules) {
    this.#relay = relay;
    this.#rules = rules;
  }

  get reason(): ReserveReason {
    return this.#reason;
  }

  /** Why another endpoint will be asked. */
  get failure(): Failure {
    return this.#failure;
  }

  /** A refusal of the option that the balancer added. */
  get isAboutOption(): boolean {
    return this.#reason === "option" && OPTION_WORDS.some((word) => this.#relay.names(word));
  }

  /** The head has come. */
  head(): ReserveStep {
    const { status, isStream } = this.#relay;
    const { asksForUsage, guardsStreams } = this.#rules;
    if (asksForUsage && FIELD_REFUSALS.has(status)) {
      this.#reason = "option";
      return "wait";
    }
    if (status >= 400 && this.#moves(blameOfStatus(status))) return "fallback";
    if (!isStream) return "wait";
    if (!guardsStreams) return "open";
    this.#reason = "first_event";
    return "wait";
  }

  /** A piece of the body has come. @param isProgress It held an event with data. */
  piece(isProgress: boolean): ReserveStep {
    if (this.#reason === "first_event") {
      if (this.#relay.beginsWithError) return this.#movesForError() ? "fallback" : "open";
      if (isProgress) return "open";
    }
    if (!this.#relay.isTooLargeToKeep) return "wait";
    return this.#reason === "fallback" ? "drop" : "open";
  }

  /** The body is over. `wait` is not among the answers. */
  end(): ReserveStep {
    // The first event may also have been the last, and have ended with the stream.
    const mayMove = this.#reason === "first_event" && this.#relay.beginsWithError;
    if (this.#reason === "fallback" || (mayMove && this.#movesForError())) return "fallback";
    return this.#relay.outcome === "truncated" ? "drop" : "open";
  }

  #movesForError(): boolean {
    const { error } = this.#relay;
    return error !== undefined && this.#moves(blameOfError(error));
  }

  #moves(blame: ReturnType<typeof blameOfError>): boolean {
    if (blame === undefined || blame === "client" || !this.#rules.mayMove(blame)) return false;
    this.#reason = "fallback";
    this.#failure = blame;
    return true;
  }
}

/** How engines refuse a field: most with 400, web frameworks with 422. */
const FIELD_REFUSALS: ReadonlySet<number> = new Set([400, 422]);
const OPTION_WORDS = ["stream_options", "include_usage"];
