export { Access } from "./access/access.ts";
export { DECISION_CHANNEL, type DecisionMessage } from "./admin/decision-channel.ts";
export { type ExplainAnswer, type ExplainQuestion, explainRequest } from "./admin/explain.ts";
export { GatewayMetrics } from "./admin/metrics.ts";
export { createStreamMeter } from "./answer/stream-meter.ts";
export { ERRORS } from "./client/errors.ts";
export { senderReaders } from "./request/sender.ts";
export { type RunningServer, startServer } from "./server.ts";
