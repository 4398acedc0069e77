export type { Config, ListenAddress } from "../config/index.ts";
export { type Clock, monotonicClock } from "./clock.ts";
export type { EndpointMonitor } from "./endpoint-monitor.ts";
export { createLog, type Log } from "./log.ts";
export type { ModelDirectory, ModelTarget } from "./model-directory.ts";
export { Runtime, type RuntimeParts } from "./runtime.ts";
export type { ServedPool } from "./served-pool.ts";
