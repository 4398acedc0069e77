import type { Endpoint, EngineKind, HoldingLimits } from "../core/index.ts";
import type { Secret } from "./secret.ts";

/** The validated configuration of a balancer: every default filled in, every name resolved, nothing left to check. */
export interface Config {
  /** Where clients connect. */
  readonly listen: ListenAddress;
  /** Where metrics and the admin API are served; undefined: nowhere. */
  readonly admin: ListenAddress | undefined;
  readonly log: LogConfig;
  /** Where a request's session key may be, first match wins; empty: requests have no session. Undefined: the gateway's own order. */
  readonly sessionKey: readonly SessionKeySource[] | undefined;
  /** At least one. */
  readonly pools: readonly PoolConfig[];
  /** Paths that are forwarded as they come, besides those the gateway knows. */
  readonly passthrough: readonly string[];
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly health: HealthConfig;
  /** How many endpoints one request may be tried on, the first included. */
  readonly attempts: number;
  /** Undefined: nothing is recorded. */
  readonly recording: RecordingConfig | undefined;
}

/** A TCP address to listen on. */
export interface ListenAddress {
  /** Name or IP literal, IPv6 without its brackets, as `node:net` takes it. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

export interface LogConfig {
  readonly level: LogLevel;
  /** `auto`: pretty on a terminal, JSON elsewhere. */
  readonly format: LogFormat;
}

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ["auto", "json", "pretty"] as const;
type LogFormat = (typeof LOG_FORMATS)[number];

/** `header:NAME` with the name in lower case, or `body:PATH` with a dotted path into the JSON body. */
export type SessionKeySource = `header:${string}` | `body:${string}`;

/** Endpoints that serve the same models, balanced by one policy. */
export interface PoolConfig {
  /** Unique; `default` when the file has no pools. */
  readonly name: string;
  /** Models the pool answers for; undefined: those its endpoints report. */
  readonly models: readonly string[] | undefined;
  /** Further names clients may use, and the model each stands for. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly policy: PolicyConfig;
  /** How many requests its balancer holds back, and how long. */
  readonly holding: HoldingLimits;
  /** At least one. */
  readonly endpoints: readonly EndpointConfig[];
}

/** A policy by name, with options its own definition has validated. */
export interface PolicyConfig {
  readonly name: string;
  /** What `PolicyDefinition.create` takes. */
  readonly options: unknown;
}

/** An endpoint as configured; its `url` is an absolute http or https URL without credentials, query or final slash. */
export interface EndpointConfig extends Endpoint {
  /** `auto`: found out by probing. */
  readonly engine: EngineKind | "auto";
  /** Sent as bearer token in place of the client's; undefined: the client's credentials pass through. */
  readonly apiKey: Secret | undefined;
  /** Models it serves; undefined: those it reports. */
  readonly models: readonly string[] | undefined;
}

export interface Limits {
  /** Largest request body, as sent. */
  readonly bodyBytes: number;
  /** Largest request head: request line and headers together. */
  readonly headerBytes: number;
}

/** Milliseconds each; undefined: no limit. */
export interface Timeouts {
  /** Opening a connection to an endpoint. */
  readonly connectMs: number | undefined;
  /** From the request sent to the first byte of the answer; an answer that is not streamed starts when it is complete. */
  readonly firstByteMs: number | undefined;
  /** Between two chunks of an answer. */
  readonly idleMs: number | undefined;
  /** How long a client's idle connection stays open. */
  readonly keepAliveMs: number | undefined;
  /** How long an idle connection to an endpoint is kept for reuse. */
  readonly upstreamKeepAliveMs: number;
  /** How long running requests may take to finish once the balancer was told to stop. */
  readonly drainMs: number | undefined;
}

/** Where requests are recorded for `evenkeel simulate`. */
export interface RecordingConfig {
  readonly file: string;
  /** Size of the file at which recording ends. */
  readonly maxBytes: number;
}

export interface HealthConfig {
  /** Time between two probes of an endpoint. */
  readonly intervalMs: number;
  /** How long a probe may take. */
  readonly timeoutMs: number;
  /** Consecutive failed probes that make an endpoint unhealthy. */
  readonly unhealthyAfter: number;
  /** Consecutive successful probes that make it healthy again. */
  readonly healthyAfter: number;
  /** Path that is probed; undefined: the engine's own. */
  readonly path: string | undefined;
}
