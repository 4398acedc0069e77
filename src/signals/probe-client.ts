import { errors, Pool } from "undici";

/** How a GET ended; `reason` is an error code, never a message, so that no address or key can be in it. */
export type ProbeAnswer =
  | { readonly kind: "answered"; readonly status: number; readonly body: string }
  | { readonly kind: "timed_out"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

export interface ProbeClient {
  /** Never rejects. */
  get(path: string): Promise<ProbeAnswer>;
  /** Ends what is under way and closes every socket. */
  destroy(): Promise<void>;
}

export interface ProbeClientOptions {
  /** Base URL of the endpoint; paths are appended to its own. */
  readonly url: string;
  /** Sent as bearer token; undefined: none. */
  readonly apiKey: string | undefined;
  /** From the start of a GET to the last byte of its answer. */
  readonly timeoutMs: number;
}

/** A health probe and a scrape may run side by side; nothing else does. */
const MAX_CONNECTIONS = 2;
/** Metrics of an engine with many ranks stay under 1 MiB; what is larger is not an engine's answer. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/**
 * A client of its own for one endpoint, so that a hung engine holds no more than its own two sockets. Connections are
 * not reused: each probe then also shows that the engine still accepts, and none meets a connection the engine has
 * just closed for idleness.
 */
export function createProbeClient({ url, apiKey, timeoutMs }: ProbeClientOptions): ProbeClient {
  const base = new URL(url);
  const pathPrefix = base.pathname.replace(/\/+$/, "");
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const pool = new Pool(base.origin, {
    connections: MAX_CONNECTIONS,
    pipelining: 0,
    connect: { timeout: timeoutMs },
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  return {
    async get(path) {
      // undici's own limits have a resolution of about a second and cover phases; this one covers the whole.
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), timeoutMs);
      try {
        const { statusCode, body } = await pool.request({
          method: "GET",
          path: pathPrefix + path,
          headers,
          signal: deadline.signal,
        });
        return { kind: "answered", status: statusCode, body: await body.text() };
      } catch (error) {
        if (deadline.signal.aborted || error instanceof errors.ConnectTimeoutError) {
          return { kind: "timed_out", reason: `no answer within ${timeoutMs} ms` };
        }
        return { kind: "failed", reason: codeOf(error) };
      } finally {
        clearTimeout(timer);
      }
    },
    destroy: () => pool.destroy(),
  };
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
