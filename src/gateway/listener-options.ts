import type { Config, ListenerTls } from "../runtime/index.ts";

/** Node's parser at its strictest. */
export const PARSING = {
  insecureHTTPParser: false,
  joinDuplicateHeaders: false,
  // Looked at with the rest of the head, so that the answer has the API's shape.
  requireHostHeader: false,
} as const;

/** The times a client may take, as properties of Node's server, where 0 stands for no limit. */
export function timersOf({ timeouts: { keepAliveMs = 0, clientHeadMs = 0, clientBodyMs } }: Config): object {
  return {
    keepAliveTimeout: keepAliveMs,
    headersTimeout: clientHeadMs,
    // For bodies that nobody reads; those that are wanted have their own, shorter limit.
    requestTimeout: clientBodyMs === undefined ? 0 : clientHeadMs + clientBodyMs + UNREAD_BODY_MS,
    connectionsCheckingInterval: Math.min(MAX_CHECK_MS, Math.max(MIN_CHECK_MS, (clientHeadMs || MAX_CHECK_MS) / 4)),
  };
}

/** What is shown to clients and asked of them, as Node takes it. */
export function tlsOptions({ cert, key, clientCa }: ListenerTls): object {
  const client = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return { cert, key: key.reveal(), ...client, handshakeTimeout: HANDSHAKE_MS, ALPNProtocols: ["http/1.1"] };
}

/** Beyond what a body may take that is wanted. */
const UNREAD_BODY_MS = 60_000;
/** How often Node looks for clients that are late, and so how late that is noticed. */
const MIN_CHECK_MS = 50;
const MAX_CHECK_MS = 5_000;
/** A handshake takes two round trips. */
const HANDSHAKE_MS = 10_000;
