export type {
  ClientKey,
  Config,
  EndpointConfig,
  EndpointTls,
  FailoverConfig,
  KeyHash,
  ListenAddress,
  ListenerTls,
  Problem,
} from "../config/index.ts";
export { formatProblem, readEndpoint } from "../config/index.ts";
export type { Clock } from "./clock.ts";
export type { EndpointMonitor } from "./endpoint-monitor.ts";
export { HostAddresses } from "./host-addresses.ts";
export { LiveBalancer, type TicketHolder } from "./live-balancer.ts";
export { createLog } from "./log.ts";
export type { ModelTarget } from "./model-directory.ts";
export { RecordingError } from "./recorder.ts";
export { type ConfigSource, RELOAD_RESULTS, type ReloadReport } from "./reloader.ts";
export type { Resolver } from "./resolver.ts";
export { Runtime, type RuntimeParts } from "./runtime.ts";
export { isSameValue } from "./same-value.ts";
export type { ServedPool } from "./served-pool.ts";
