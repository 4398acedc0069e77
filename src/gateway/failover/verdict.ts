import type { AnswerRelay } from "../answer/answer-relay.ts";
import { blameOfError, blameOfStatus } from "./failure.ts";

/** What the end of an attempt says of its endpoint. `neutral`: nothing. */
export type Verdict = "succeeded" | "failed" | "busy" | "neutral";

/**
 * Of an answer that came to its end. What is the request's fault says nothing of the endpoint: it neither harms it nor
 * wipes out what harmed it.
 */
export function verdictOf({ status, outcome, error, tokens }: AnswerRelay): Verdict {
  switch (outcome) {
    case "ok":
      return status < 300 ? "succeeded" : "neutral";
    case "in_band_error": {
      const blame = error === undefined ? undefined : blameOfError(error);
      // Requests are found fault with before anything is generated for them, and not all engines say whose fault it was.
      if (blame === undefined) return tokens.firstTokenAtMs === undefined ? "neutral" : "failed";
      return blame === "client" ? "neutral" : blame;
    }
    case "upstream_4xx":
    case "upstream_5xx": {
      const blame = blameOfStatus(status);
      return blame === "client" ? "neutral" : blame;
    }
    default:
      return "failed";
  }
}
