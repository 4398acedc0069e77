export type {
  Config,
  EndpointConfig,
  HealthConfig,
  Limits,
  ListenAddress,
  LogConfig,
  LogFormat,
  LogLevel,
  PolicyConfig,
  PoolConfig,
  SessionKeySource,
  Timeouts,
} from "./config.ts";
export { loadConfig, readConfig } from "./load-config.ts";
export { type Checked, formatProblem, type Problem } from "./problem.ts";
export { Secret } from "./secret.ts";
