import { channel } from "node:diagnostics_channel";
import type { Decision, RequestProfile } from "../../core/index.ts";

/** One decision as it was made, with everything it was made of. */
export interface DecisionMessage {
  readonly requestId: string;
  readonly pool: string;
  readonly request: RequestProfile;
  readonly decision: Decision;
  /** How long the request was held before this decision, in all; undefined: it was not. */
  readonly heldMs: number | undefined;
}

/** Published at every decision: of a held request once when it is held and once when it is released. Costs a check while nobody listens. Subscribers must not keep the lease. */
export const DECISION_CHANNEL = "evenkeel:decision";

const decisions = channel(DECISION_CHANNEL);

export function publishDecision(message: DecisionMessage): void {
  if (decisions.hasSubscribers) decisions.publish(message);
}
