import type { IncomingHttpHeaders } from "node:http";
import type { Priority, RequestProfile } from "../../core/index.ts";
import type { Config } from "../../runtime/index.ts";
import type { Caller } from "../access/access.ts";
import type { JsonObject } from "./json-object.ts";
import { createSessionKeyReader, DEFAULT_SESSION_KEY_SOURCES, type SessionKeyReader } from "./session-key.ts";

/** What is known of a request by who sends it, not by what it asks. */
export type Sender = Pick<RequestProfile, "sessionKey" | "tenant" | "priority" | "patienceMs">;

/** What finds out who sends, as it is configured. */
export interface SenderReaders {
  readonly sessionKeys: SessionKeyReader;
  /** Of callers whose key says no tenant. */
  readonly tenants: SessionKeyReader;
}

/** Who sends a request, and what became of the session key, for those who count. */
export interface SenderReading {
  readonly sender: Sender;
  readonly sessionKey: "found" | "absent" | "unusable";
}

/** Readers as configured. */
export function senderReaders({ sessionKey, tenantKey }: Pick<Config, "sessionKey" | "tenantKey">): SenderReaders {
  return {
    sessionKeys: createSessionKeyReader(sessionKey ?? DEFAULT_SESSION_KEY_SOURCES),
    tenants: createSessionKeyReader(tenantKey),
  };
}

/** @param body The parsed body; undefined: it was not looked into. */
export function senderOf(
  headers: IncomingHttpHeaders,
  body: JsonObject | undefined,
  readers: SenderReaders,
  caller: Pick<Caller, "tenant" | "ceiling">,
): SenderReading {
  const tenant = caller.tenant ?? named(readers.tenants.read(headers, body).key);
  const session = readers.sessionKeys.read(headers, body);
  return {
    sender: {
      sessionKey: session.key && scoped(tenant, session.key),
      tenant,
      priority: priorityOf(headers, caller.ceiling),
      patienceMs: patienceOf(headers),
    },
    sessionKey: session.key === undefined ? session.reason : "found",
  };
}

/** A session key as its client wrote it. */
export function clientPartOf(sessionKey: string): string {
  return sessionKey.slice(sessionKey.indexOf(TENANT_END) + 1);
}

/** Two tenants that use the same key, `1` say, have two sessions. */
function scoped(tenant: string | undefined, key: string): string {
  return tenant === undefined && !key.includes(TENANT_END) ? key : `${tenant ?? ""}${TENANT_END}${key}`;
}

/** What has control characters is no name. */
function named(tenant: string | undefined): string | undefined {
  return tenant !== undefined && CONTROL.test(tenant) ? undefined : tenant;
}

const CONTROL = /\p{Cc}/u;
/** Not in a tenant's name. */
const TENANT_END = "\n";

/** Asks for a priority: `low`, `normal` or `high`. */
export const PRIORITY_HEADER = "x-evenkeel-priority";
/** Whole milliseconds that the client waits for its answer to begin. */
export const PATIENCE_HEADER = "x-evenkeel-timeout-ms";
/** The same in seconds, as the SDKs of OpenAI and Anthropic say it of themselves. */
const SDK_TIMEOUT_HEADER = "x-stainless-timeout";

const RANKS: Readonly<Record<Priority, number>> = { low: 0, normal: 1, high: 2 };

/** The priority asked for, as far as the sender may have it. What is no priority is not taken for one. */
export function priorityOf(headers: IncomingHttpHeaders, ceiling: Priority): Priority {
  const asked = headers[PRIORITY_HEADER];
  if (asked !== "low" && asked !== "normal" && asked !== "high") return ceiling === "low" ? "low" : "normal";
  return RANKS[asked] < RANKS[ceiling] ? asked : ceiling;
}

/** How long the client waits, from its request's arrival; undefined: it does not say. */
export function patienceOf(headers: IncomingHttpHeaders): number | undefined {
  return positive(headers[PATIENCE_HEADER], 1) ?? positive(headers[SDK_TIMEOUT_HEADER], 1_000);
}

function positive(text: string | readonly string[] | undefined, unitMs: number): number | undefined {
  if (typeof text !== "string" || !DECIMAL.test(text)) return undefined;
  const ms = Number(text) * unitMs;
  return ms > 0 && ms <= LONGEST_MS ? ms : undefined;
}

const DECIMAL = /^\d{1,12}(\.\d{1,6})?$/;
/** A day: whoever says more means that it waits for as long as it takes. */
const LONGEST_MS = 86_400_000;
