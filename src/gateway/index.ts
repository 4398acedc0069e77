export { DECISION_CHANNEL, type DecisionMessage } from "./decision-channel.ts";
export { ERRORS } from "./errors.ts";
export { type ExplainAnswer, type ExplainQuestion, explainRequest } from "./explain.ts";
export { GatewayMetrics } from "./metrics.ts";
export { type RunningServer, startServer } from "./server.ts";
export { createSessionKeyReader, DEFAULT_SESSION_KEY_SOURCES } from "./session-key.ts";
export { createStreamMeter } from "./stream-meter.ts";
