import type { EjectionOptions, Endpoint, EngineKind, HoldingLimits, Priority } from "../core/index.ts";
import type { Secret } from "./secret.ts";

/** The validated configuration of a balancer: every default filled in, every name resolved, nothing left to check. */
export interface Config {
  /** Where clients connect. */
  readonly listen: ListenAddress;
  /** Undefined: clients connect without TLS. */
  readonly tls: ListenerTls | undefined;
  /** Where metrics and the admin API are served; undefined: nowhere. */
  readonly admin: ListenAddress | undefined;
  /** Processes that serve clients; 1: this one alone. */
  readonly workers: number;
  /** Who may use the admin listener; empty: whoever can connect to it. */
  readonly adminKeys: readonly KeyHash[];
  /** Who may send requests; empty: everyone, and what credentials clients bring is the engines' affair. */
  readonly keys: readonly ClientKey[];
  /** Where the tenant of a request may be that its key says none of, first match wins; empty: nowhere. */
  readonly tenantKey: readonly SessionKeySource[];
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
  readonly failover: FailoverConfig;
  readonly streams: StreamsConfig;
  /** Undefined: no request is at two endpoints at a time. */
  readonly hedging: HedgingConfig | undefined;
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
  /** Those that are configured; at least one if nothing is discovered. */
  readonly endpoints: readonly EndpointConfig[];
  /** Where further endpoints are found. */
  readonly discovery: readonly DiscoverySource[];
}

/** Where endpoints are found that come and go. */
export type DiscoverySource =
  /** A YAML or JSON file with a list of endpoints, as `endpoints` has them; it is read again when it changes. */
  | { readonly kind: "file"; readonly path: string }
  /** Every address a name stands for is an endpoint. */
  | {
      readonly kind: "dns";
      readonly host: string;
      readonly port: number;
      readonly scheme: "http" | "https";
      /** Path of the base URL; empty: none. */
      readonly basePath: string;
      readonly intervalMs: number;
    };

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
  /** How an https endpoint is verified and shown who asks; undefined: by the system's authorities, without a certificate. */
  readonly tls: EndpointTls | undefined;
}

/** Texts in PEM. */
export interface EndpointTls {
  /** The authority that signed its certificate; undefined: the system's. */
  readonly ca: string | undefined;
  /** What the balancer shows it; undefined: nothing. */
  readonly cert: string | undefined;
  readonly key: Secret | undefined;
  /** The name its certificate must have; undefined: the host of its URL. */
  readonly serverName: string | undefined;
  /** False: any certificate will do. */
  readonly isVerified: boolean;
}

/** What the balancer shows its clients; texts in PEM. */
export interface ListenerTls {
  readonly cert: string;
  readonly key: Secret;
  /** The authority that must have signed the clients' certificates; undefined: clients need none. */
  readonly clientCa: string | undefined;
}

/** A key as it is kept: who it belongs to, and what it hashes to. */
export interface KeyHash {
  /** Its name in logs; the key itself is nowhere. */
  readonly id: string;
  /** SHA-256 of the key's UTF-8 bytes. */
  readonly sha256: Buffer;
}

/** A client's key and what it allows. */
export interface ClientKey extends KeyHash {
  /** Whose requests count together when tenants compete. */
  readonly tenant: string;
  /** The highest that its requests may have. */
  readonly priority: Priority;
  /** Undefined: no limit. */
  readonly requestsPerMinute: number | undefined;
  /** Prompt and output tokens together; undefined: no limit. */
  readonly tokensPerMinute: number | undefined;
  /** By the names clients use; undefined: all. */
  readonly models: readonly string[] | undefined;
}

/** When a request that was not answered is sent to another endpoint. */
export interface FailoverConfig {
  /** Endpoints one request may be tried on, the first included. */
  readonly attempts: number;
  /** Further endpoints after one that had the request and lost it. */
  readonly resends: number;
  /** Further endpoints after one that had the request and was too slow: its prompt may be half computed. */
  readonly slowResends: number;
  /** Retries as a share of requests. */
  readonly budgetRatio: number;
  /** Retries that are allowed however few requests there are. */
  readonly minRetriesPerSecond: number;
  /** How long the head of a stream waits for its first event; undefined: it goes out at once. */
  readonly guardMs: number | undefined;
}

/** What clients of silent streams get to see. */
export interface StreamsConfig {
  /** Silence after which a comment goes into a stream; undefined: none does. */
  readonly heartbeatMs: number | undefined;
  /** Whether a stream that shows nothing for that long is opened before the endpoint has answered. */
  readonly opensEarly: boolean;
}

/** When a request that shows no first byte is sent to a second endpoint as well. */
export interface HedgingConfig {
  readonly afterMs: number;
  /** Hedged requests as a share of all. */
  readonly budgetRatio: number;
}

export interface Limits {
  /** Largest request body, as sent. */
  readonly bodyBytes: number;
  /** Largest request head: request line and headers together. */
  readonly headerBytes: number;
  /** What request bodies may take in memory, those of all requests together. */
  readonly bufferedBytes: number;
  /** Of clients that are open at a time. */
  readonly connections: number;
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
  /** From a request's arrival to the end of its answer. */
  readonly totalMs: number | undefined;
  /** What a client may take to send a request's head. */
  readonly clientHeadMs: number | undefined;
  /** What a client may take to send a request's body. */
  readonly clientBodyMs: number | undefined;
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
  /** When traffic that fails takes an endpoint out of its pool, and for how long. */
  readonly ejection: EjectionOptions;
  /** How long a new or recovered endpoint takes to its full share; undefined: it has it at once. */
  readonly slowStartMs: number | undefined;
}
