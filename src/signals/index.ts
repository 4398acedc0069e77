export type { EngineAdapter } from "./adapter.ts";
export { engineAdapters } from "./engines/index.ts";
export type { ServedModel } from "./models.ts";
export { createPoller, type PolledEndpoint, type Poller, type PollingOptions } from "./poller.ts";
