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
export { type Clock, monotonicClock } from "./clock.ts";
export type { EndpointMonitor } from "./endpoint-monitor.ts";
export { type ExchangePort, ipcPort } from "./exchange/exchange-port.ts";
export { ExchangeRelay } from "./exchange/exchange-relay.ts";
export { KeyUses } from "./exchange/key-uses.ts";
export { ProcessExchange } from "./exchange/process-exchange.ts";
export type { ExchangeListener, ExchangeMessage, KeyUse, WorkExchange } from "./exchange/work-exchange.ts";
export { HostAddresses } from "./host-addresses.ts";
export { Listeners } from "./listeners.ts";
export { LiveBalancer, type TicketHolder } from "./live-balancer.ts";
export { createLog, type Log } from "./log.ts";
export type { ModelTarget } from "./model-directory.ts";
export { compareConfigs, type ReconfigureReport } from "./reconfiguration.ts";
export { type AnswerSizes, type RecordedProfile, Recorder, RecordingError, type RequestRecorder } from "./recorder.ts";
export { type ConfigSource, RELOAD_RESULTS, Reloader, type ReloadReport } from "./reloader.ts";
export type { Resolver } from "./resolver.ts";
export { type OperatorChanges, Runtime, type RuntimeParts } from "./runtime.ts";
export { isSameValue } from "./same-value.ts";
export type { ServedPool } from "./served-pool.ts";
