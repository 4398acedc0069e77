import http from "node:http";
import https from "node:https";
import type { LookupFunction } from "node:net";

/** How a GET ended; `reason` is an error code, never a message, so that no address or key can be in it. */
export type ProbeAnswer =
  | { readonly kind: "answered"; readonly status: number; readonly body: string }
  | { readonly kind: "timed_out"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

export interface ProbeClient {
  /** Never rejects. Paths are appended to that of the endpoint. */
  get(path: string): Promise<ProbeAnswer>;
  /** Ends what is under way, its sockets closed on return; nothing is sent any more. */
  destroy(): void;
}

export interface ProbeClientOptions {
  /** Base URL of the endpoint. */
  readonly url: string;
  /** Sent as bearer token; undefined: none. */
  readonly apiKey: string | undefined;
  /** From the start of a GET to the last byte of its answer, connecting included. */
  readonly timeoutMs: number;
  /** How an https endpoint is verified and shown who asks; undefined: by the system's authorities, without a certificate. */
  readonly tls: ProbeTls | undefined;
  /** How the name of its host is resolved; absent: as the system does. */
  readonly lookup?: LookupFunction | undefined;
}

/** TLS to one endpoint, texts in PEM; the same as its traffic has. */
export interface ProbeTls {
  /** The authority that signed its certificate; undefined: the system's. */
  readonly ca: string | undefined;
  /** What it is shown; undefined: nothing. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** The name its certificate must have; undefined: the host of its URL. */
  readonly serverName: string | undefined;
  /** False: any certificate will do. */
  readonly isVerified: boolean;
}

/** Metrics of an engine with many ranks stay under 1 MiB; what is larger is not an engine's answer. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

const STOPPED: ProbeAnswer = { kind: "failed", reason: "stopped" };

/**
 * A client for the few small GETs an endpoint is watched with, apart from the sockets of its traffic. Each GET opens a
 * connection of its own: so it shows that the engine still accepts, and never meets a connection the engine has just
 * closed for idleness. `node:http` rather than a pool, because it gives up a connection that is still being opened at
 * once, on the time limit as on `destroy`.
 */
export function createProbeClient({ url, apiKey, timeoutMs, tls, lookup }: ProbeClientOptions): ProbeClient {
  const base = new URL(url);
  const pathPrefix = base.pathname.replace(/\/+$/, "");
  const send = base.protocol === "https:" ? https.request : http.request;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const tlsOptions = tls === undefined ? {} : tlsOptionsOf(tls);
  const underWay = new Set<(answer: ProbeAnswer) => void>();
  let isDestroyed = false;

  function exchange(path: string, resolve: (answer: ProbeAnswer) => void): void {
    const target = new URL(base);
    target.pathname = pathPrefix + path;
    const request = send(target, { method: "GET", agent: false, headers, lookup, ...tlsOptions });
    const timer = setTimeout(settle, timeoutMs, { kind: "timed_out", reason: `no answer within ${timeoutMs} ms` });
    underWay.add(settle);

    // The first ending counts; those that follow from it, such as the close after a time-out, change nothing.
    function settle(answer: ProbeAnswer): void {
      clearTimeout(timer);
      underWay.delete(settle);
      request.destroy();
      resolve(answer);
    }

    request.on("response", (response) => readBody(response, settle));
    request.on("error", (error) => settle(failed(error)));
    request.on("close", () => settle({ kind: "failed", reason: "closed before its answer was complete" }));
    request.end();
  }

  return {
    async get(path) {
      if (isDestroyed) return STOPPED;
      try {
        return await new Promise((resolve) => exchange(path, resolve));
      } catch (error) {
        return failed(error);
      }
    },
    destroy() {
      isDestroyed = true;
      for (const settle of underWay) settle(STOPPED);
    },
  };
}

function tlsOptionsOf({ ca, cert, key, serverName, isVerified }: ProbeTls): https.RequestOptions {
  return { ca, cert, key, rejectUnauthorized: isVerified, ...(serverName !== undefined && { servername: serverName }) };
}

function readBody(response: http.IncomingMessage, settle: (answer: ProbeAnswer) => void): void {
  const chunks: Buffer[] = [];
  let bodyBytes = 0;
  response.on("data", (chunk: Buffer) => {
    bodyBytes += chunk.length;
    if (bodyBytes > MAX_ANSWER_BYTES) settle({ kind: "failed", reason: `answer over ${MAX_ANSWER_BYTES} bytes` });
    else chunks.push(chunk);
  });
  response.on("end", () => {
    settle({ kind: "answered", status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
  });
  response.on("error", (error) => settle(failed(error)));
}

function failed(error: unknown): ProbeAnswer {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "error";
  return { kind: "failed", reason: code };
}
