export { DECISION_CHANNEL, type DecisionMessage } from "./decision-channel.ts";
export { ERRORS, type ErrorCode } from "./errors.ts";
export { type ExplainAnswer, type ExplainQuestion, explainRequest } from "./explain.ts";
export { type RunningServer, startServer } from "./server.ts";
export {
  createSessionKeyReader,
  DEFAULT_SESSION_KEY_SOURCES,
  parseSessionKeySource,
  type SessionKeyReader,
} from "./session-key.ts";
export { createStreamMeter, type StreamMeter } from "./stream-meter.ts";
