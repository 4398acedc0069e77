export type { EngineAdapter, HealthReading } from "./adapter.ts";
export { engineAdapters } from "./engines/index.ts";
export type { ServedModel } from "./models.ts";
export {
  createPoller,
  type DetectedEngine,
  type PolledEndpoint,
  type Poller,
  type PollerOptions,
  type PollingOptions,
} from "./poller.ts";
export type { PollerLog, ScrapeEvents } from "./scraper.ts";
