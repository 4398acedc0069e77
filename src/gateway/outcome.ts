import type { ErrorCode } from "./client/errors.ts";

/** How an answer that came from an endpoint ended. */
export type AnswerOutcome =
  | "ok"
  | "upstream_4xx"
  | "upstream_5xx"
  /** The engine told an error inside an answer that had begun with 200. */
  | "in_band_error"
  /** The endpoint broke off a body that was not whole. */
  | "truncated"
  /** A stream had begun, and its first token did not come in time. */
  | "upstream_timeout"
  /** The endpoint fell silent in the middle of an answer. */
  | "stalled"
  /** The request took longer than any may, its answer moving or not. */
  | "timed_out"
  /** The client stopped reading and never resumed. */
  | "client_stalled";

/** Every request ends in exactly one of these; an `ErrorCode` where the balancer itself answered. */
export type RequestOutcome = AnswerOutcome | ErrorCode | "client_closed";
