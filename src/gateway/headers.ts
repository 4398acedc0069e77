import type { IncomingHttpHeaders } from "node:http";
import type { Dialect } from "./routes.ts";

/** A message's headers as name and value in turn, repeated headers repeated. */
export type HeaderList = string[];

/** Names of the headers that the balancer adds to its answers. */
const ENDPOINT_HEADER = "x-evenkeel-endpoint";
const POLICY_HEADER = "x-evenkeel-policy";
/** Whole milliseconds that a request was held before it was sent; absent: it was not. */
const HELD_HEADER = "x-evenkeel-held-ms";
/**
 * Tells an endpoint which attempt of its request this is, from 1: that the request goes elsewhere if it fails there. An
 * endpoint that is a balancer too leaves it to the one before it then to send the request again.
 */
export const ATTEMPT_HEADER = "x-evenkeel-attempt";
const REQUEST_ID_HEADER = "x-request-id";
/** Anthropic's name for the same, which its SDK reads. */
const ANTHROPIC_REQUEST_ID_HEADER = "request-id";
/** An engine's own id, where it does not echo the balancer's. */
const UPSTREAM_REQUEST_ID_HEADER = "x-upstream-request-id";

/** RFC 9110, 7.6.1: they belong to one connection and end with it. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Set anew for the connection to the endpoint, from the body that is really sent. */
const OURS_UPSTREAM: ReadonlySet<string> = new Set(["host", "content-length", "expect", REQUEST_ID_HEADER]);

/**
 * Headers by which balancers, pickers and their helpers choose a destination: from a client they choose nothing here,
 * nor behind here.
 */
const CONTROL: ReadonlySet<string> = new Set([
  "x-original-dst-host",
  "x-data-parallel-rank",
  "x-data-parallel-host-port",
  "x-prefiller-url",
  "x-prefiller-host-port",
  "x-encoder-hosts-ports",
  "x-smg-target-worker",
  "target-pod",
  "routing-strategy",
  // By these a path or a method other than that of the request is asked for.
  "x-original-url",
  "x-rewrite-url",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
]);

/** Spelled with an underscore they are somebody's try to say what the balancer says itself. */
const OURS_RESPELLED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...OURS_UPSTREAM,
  "content-encoding",
  "content-type",
  "x-api-key",
  "x-forwarded-for",
]);

/** Beginnings of names that are others' control headers, whichever there will be, and the balancer's own. */
const CONTROL_PREFIXES = ["x-gateway-", "x-llm-d-", "x-envoy-", "x-evenkeel-"] as const;

/** What the balancer says of itself: an endpoint that is one too has its own word replaced. */
const RECEIPT_PREFIX = "x-evenkeel-";

/** Many servers take an underscore in a header's name for a hyphen. */
function isControl(name: string): boolean {
  const plain = name.includes("_") ? name.replaceAll("_", "-") : name;
  if (CONTROL.has(plain) || (plain !== name && OURS_RESPELLED.has(plain))) return true;
  return plain.startsWith("x-") && CONTROL_PREFIXES.some((prefix) => plain.startsWith(prefix));
}

/** Where a request comes from and goes to, as its headers must say. */
export interface Hop {
  /** Address of the client's end of the connection; undefined: it is gone. */
  readonly clientAddress: string | undefined;
  readonly requestId: string;
  /** Which attempt of the request this is; undefined: the only one there may be. */
  readonly attempt: number | undefined;
  /** Bearer token for the endpoint; undefined: the client's own credentials pass. */
  readonly apiKey: string | undefined;
  /** Whether the answer must be readable: the endpoint is then asked not to compress it. */
  readonly mustReadAnswer: boolean;
  /** False: the body was decoded, so its old coding does not hold any more. */
  readonly keepsContentEncoding: boolean;
}

/** Headers for the endpoint, from those of the client. */
export function upstreamHeaders(client: IncomingHttpHeaders, hop: Hop): HeaderList {
  const listed = connectionOptions(client.connection);
  const headers: HeaderList = [];
  for (const name in client) {
    const value = client[name];
    if (value === undefined || HOP_BY_HOP.has(name) || OURS_UPSTREAM.has(name) || isControl(name)) continue;
    if (listed?.has(name) && !SURVIVES_CONNECTION.has(name)) continue;
    if (hop.apiKey !== undefined && (name === "authorization" || name === "x-api-key")) continue;
    if (hop.mustReadAnswer && name === "accept-encoding") continue;
    if (name === "content-encoding" && !hop.keepsContentEncoding) continue;
    if (name === "x-forwarded-for" || name === "via") continue;
    append(headers, name, value);
  }
  headers.push(REQUEST_ID_HEADER, hop.requestId);
  if (hop.attempt !== undefined) headers.push(ATTEMPT_HEADER, String(hop.attempt));
  if (hop.mustReadAnswer) headers.push("accept-encoding", "identity");
  if (hop.apiKey !== undefined) headers.push("authorization", `Bearer ${hop.apiKey}`);
  headers.push("x-forwarded-for", joined(client["x-forwarded-for"], hop.clientAddress ?? "unknown"));
  headers.push("via", joined(client.via, "1.1 evenkeel"));
  return headers;
}

/** What the answer's head is made from. */
export interface AnswerSource {
  readonly endpointId: string;
  readonly policy: string;
  /** How long the request was held before it was sent; undefined: it was not. */
  readonly heldMs: number | undefined;
  readonly requestId: string;
  readonly dialect: Dialect;
  /** The body is not what the endpoint sent, so its length does not hold any more. */
  readonly dropsLength: boolean;
  /** What is left of the caller's limits; empty: it has none. */
  readonly limits: HeaderList;
}

/** Headers for the client, from those of the endpoint. */
export function answerHeaders(endpoint: IncomingHttpHeaders, source: AnswerSource): HeaderList {
  const listed = connectionOptions(endpoint.connection);
  const headers: HeaderList = [...source.limits];
  const hasLimits = headers.length > 0;
  for (const name in endpoint) {
    const value = endpoint[name];
    if (value === undefined || HOP_BY_HOP.has(name) || listed?.has(name)) continue;
    if (name.startsWith(RECEIPT_PREFIX)) continue;
    if (hasLimits && name.startsWith(LIMITS_PREFIX)) continue;
    if (name === REQUEST_ID_HEADER) {
      if (value !== source.requestId) append(headers, UPSTREAM_REQUEST_ID_HEADER, value);
      continue;
    }
    if (name === ANTHROPIC_REQUEST_ID_HEADER && source.dialect === "messages") continue;
    if (name === "content-length" && source.dropsLength) continue;
    append(headers, name, value);
  }
  headers.push(...ownHeaders(source));
  if (isEventStream(endpoint) && endpoint["x-accel-buffering"] === undefined) headers.push("x-accel-buffering", "no");
  return headers;
}

/** The headers by which an answer says who served it. */
export function ownHeaders(source: Omit<AnswerSource, "dropsLength" | "limits">): HeaderList {
  const { endpointId, policy, heldMs, requestId, dialect } = source;
  const held = heldMs === undefined ? [] : [HELD_HEADER, String(Math.round(heldMs))];
  return [ENDPOINT_HEADER, endpointId, POLICY_HEADER, policy, ...held, ...requestIdHeaders(requestId, dialect)];
}

/** Of a stream that is opened before an endpoint has answered. */
export function earlyHead(requestId: string, dialect: Dialect): HeaderList {
  const stream = [
    "content-type",
    "text/event-stream; charset=utf-8",
    "cache-control",
    "no-cache",
    "x-accel-buffering",
    "no",
  ];
  return [...stream, ...requestIdHeaders(requestId, dialect)];
}

/** @param dialect undefined: the path is none of the balanced ones. */
export function requestIdHeaders(requestId: string, dialect: Dialect | undefined): HeaderList {
  const headers = [REQUEST_ID_HEADER, requestId];
  return dialect === "messages" ? [...headers, ANTHROPIC_REQUEST_ID_HEADER, requestId] : headers;
}

export function isEventStream(headers: IncomingHttpHeaders): boolean {
  return headers["content-type"]?.startsWith("text/event-stream") === true;
}

/** Whether a body cannot be read as it comes: it is compressed, say. */
export function isCoded({ "content-encoding": coding }: IncomingHttpHeaders): boolean {
  return coding !== undefined && coding !== "identity";
}

/** The client's id for the request if it is fit to be passed on, else a new one. */
export function requestIdOf(client: IncomingHttpHeaders): string {
  const sent = client[REQUEST_ID_HEADER];
  return typeof sent === "string" && SAFE_ID.test(sent) ? sent : crypto.randomUUID();
}

/** An endpoint's limits are those of one among several: beside the caller's own they would mislead. */
const LIMITS_PREFIX = "x-ratelimit-";

const SAFE_ID = /^[\w.:/+=@-]{1,128}$/;

/** A client cannot strip its own credentials, or another hop's, by calling them a matter of the connection. */
const SURVIVES_CONNECTION: ReadonlySet<string> = new Set(["authorization", "x-api-key"]);

/** Undefined for the usual values, which name no header. */
function connectionOptions(value: string | string[] | undefined): ReadonlySet<string> | undefined {
  if (value === undefined || value === "keep-alive" || value === "close") return undefined;
  return new Set(
    String(value)
      .toLowerCase()
      .split(",")
      .map((option) => option.trim()),
  );
}

function append(headers: HeaderList, name: string, value: string | readonly string[]): void {
  if (typeof value === "string") headers.push(name, value);
  else for (const one of value) headers.push(name, one);
}

function joined(before: string | readonly string[] | undefined, last: string): string {
  return before === undefined ? last : `${String(before)}, ${last}`;
}
