export type {
  ClientKey,
  Config,
  DiscoverySource,
  EndpointConfig,
  EndpointTls,
  FailoverConfig,
  HealthConfig,
  KeyHash,
  ListenAddress,
  ListenerTls,
  LogConfig,
  PoolConfig,
  RecordingConfig,
} from "./config.ts";
export { type Setting, settingsOf, valuesOf } from "./declaration.ts";
export type { Environment } from "./interpolation.ts";
export { configJsonSchema } from "./json-schema.ts";
export { formatListenAddress } from "./listen-address.ts";
export { loadConfig, readConfig } from "./load-config.ts";
export { type Parcel, pack, unpack } from "./parcel.ts";
export { parseUrl } from "./parse-url.ts";
export { type Checked, formatProblem, type Problem } from "./problem.ts";
export { readEndpoint, readEndpointList } from "./read-endpoints.ts";
export { type Flags, readSettings } from "./read-settings.ts";
export { configReference } from "./reference.ts";
export { configSchema } from "./schema.ts";
export { Secret } from "./secret.ts";
