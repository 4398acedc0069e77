import type { RefusalReason } from "../../core/index.ts";
import type { AnswerTokens } from "../answer/answer-relay.ts";
import type { ErrorCode, ErrorDetails } from "../client/errors.ts";
import type { AnswerOutcome, RequestOutcome } from "../outcome.ts";

/** What became of a request. */
export type DeliveryEnd =
  /** The client has an endpoint's answer, or as much of it as there was. */
  | { readonly kind: "answered"; readonly outcome: AnswerOutcome; readonly tokens: AnswerTokens }
  | { readonly kind: "client_closed"; readonly tokens: AnswerTokens | undefined }
  /** No endpoint's answer has reached the client, and none will: it is owed one by the balancer. */
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly details: ErrorDetails;
      readonly outcome: RequestOutcome;
    };

/** @param outcome How the request is counted, if not by what its client is told. */
export function refused(code: ErrorCode, details: ErrorDetails = {}, outcome: RequestOutcome = code): DeliveryEnd {
  return { kind: "refused", code, details, outcome };
}

/** What clients are told when the balancer sends their request nowhere. */
export const REFUSALS: Readonly<Record<RefusalReason, ErrorCode>> = {
  no_endpoint: "no_available_endpoint",
  unavailable: "no_available_endpoint",
  exhausted: "no_available_endpoint",
  model_not_served: "model_not_found",
  saturated: "overloaded",
  queue_full: "queue_full",
  queue_timeout: "queue_timeout",
  shed: "shed",
  shutting_down: "shutting_down",
};
