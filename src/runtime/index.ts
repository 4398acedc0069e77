export type { Config, ListenAddress } from "../config/index.ts";
export type { Clock } from "./clock.ts";
export type { EndpointMonitor } from "./endpoint-monitor.ts";
export { LiveBalancer, type TicketHolder } from "./live-balancer.ts";
export { createLog } from "./log.ts";
export type { ModelTarget } from "./model-directory.ts";
export { RecordingError } from "./recorder.ts";
export { Runtime, type RuntimeParts } from "./runtime.ts";
export type { ServedPool } from "./served-pool.ts";
