export { type ExplainAnswer, type ExplainQuestion, explainRequest } from "./explain.ts";
export { type RunningServer, startServer } from "./server.ts";
export {
  createSessionKeyReader,
  DEFAULT_SESSION_KEY_SOURCES,
  parseSessionKeySource,
  type SessionKeyReader,
} from "./session-key.ts";
