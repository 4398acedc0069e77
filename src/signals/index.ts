export type { EngineAdapter } from "./adapter.ts";
export { engineAdapters } from "./engines/index.ts";
export type { ServedModel } from "./models.ts";
export { createPollLoop, type PollLoop } from "./poll-loop.ts";
export { createPoller, type PolledEndpoint, type Poller, type PollingOptions } from "./poller.ts";
