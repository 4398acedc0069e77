import type { IncomingMessage } from "node:http";
import type { ErrorCode, ErrorDetails } from "./client/errors.ts";

/** Why a request's head is not taken. */
export interface HeadProblem {
  readonly code: Extract<ErrorCode, "malformed_request" | "head_too_large" | "upgrade_refused">;
  readonly details: ErrorDetails;
}

/**
 * What Node's parser lets pass and this server does not: whatever another server, in front or behind, could read
 * differently. Undefined: nothing of that kind.
 */
export function headProblem(request: IncomingMessage): HeadProblem | undefined {
  const { rawHeaders, headers, httpVersion, url = "" } = request;
  if (rawHeaders.length > 2 * MAX_HEADERS) {
    return { code: "head_too_large", details: { cause: `There are more than ${MAX_HEADERS} headers.` } };
  }
  if (isUpgrade(request)) return { code: "upgrade_refused", details: {} };
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return malformed("The version of HTTP is not 1.1 or 1.0.");
  if (url.includes("#")) return malformed("The target has a fragment.");
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && (coding.toLowerCase() !== "chunked" || httpVersion === "1.0")) {
    return malformed("The only transfer coding there is here is chunked.");
  }
  const hosts = count(rawHeaders, "host");
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1")) return malformed("There must be one Host header.");
  if (headers.host !== undefined && !HOST.test(headers.host)) return malformed("The Host header is not a host.");
  // Whoever stands in front may have looked at the other one.
  if (headers.authorization !== undefined && count(rawHeaders, "authorization") > 1) {
    return malformed("There must be one Authorization header.");
  }
  return undefined;
}

/** Browsers and SDKs send about 20, and proxies in between a few each. */
const MAX_HEADERS = 256;

/** The characters a host with a port is made of (RFC 3986, 3.2.2); it may be empty. */
const HOST = /^[\w.\-~%!$&'()*+,;=:[\]]*$/;

function malformed(cause: string): HeadProblem {
  return { code: "malformed_request", details: { cause } };
}

/**
 * Whether the request insists on another protocol. One that merely offers to go on in HTTP/2 is taken at its HTTP/1.1,
 * as RFC 9110, 7.8 allows: some clients offer it with every first request.
 */
function isUpgrade({ headers: { upgrade, connection } }: IncomingMessage): boolean {
  if (upgrade === undefined || connection === undefined) return false;
  return UPGRADE_OPTION.test(connection) && upgrade.toLowerCase() !== "h2c";
}

const UPGRADE_OPTION = /(?:^|,)\s*upgrade\s*(?:,|$)/i;

function count(rawHeaders: readonly string[], wanted: string): number {
  let times = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === wanted.length && name.toLowerCase() === wanted) times++;
  }
  return times;
}
