import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { type AdminAnswer, refusal } from "./admin-answer.ts";

/**
 * Keeps pages in an operator's browser from the admin listener: whoever can reach it may use it where no keys are
 * configured, and a browser reaches what its operator does. Undefined: no page has sent this.
 * @param adminHost What the listener is configured to listen on.
 */
export function strangerProblem(
  { method, headers }: Pick<IncomingMessage, "method" | "headers">,
  adminHost: string | undefined,
): AdminAnswer | undefined {
  if (!isOwnHost(headers.host, adminHost)) {
    return refusal(403, `expected the address of this listener, localhost${named(adminHost)} in Host, or adminKeys`);
  }
  if (method === "GET" || method === "HEAD") return undefined;
  if (isFromPage(headers)) return refusal(403, "expected no browser: pages may change nothing here without adminKeys");
  if (hasBody(headers) && !JSON_TYPE.test(headers["content-type"] ?? "")) {
    return refusal(415, "expected content-type: application/json, as no form of a page has it");
  }
  return undefined;
}

/**
 * A page that had its own name resolved to this address still sends its own name (DNS rebinding); it can have no address
 * for a name. HTTP/1.0 knows no Host, and no browser speaks that.
 */
function isOwnHost(host: string | undefined, adminHost: string | undefined): boolean {
  if (host === undefined) return true;
  const name = host.replace(/:\d*$/, "").toLowerCase();
  return name === "localhost" || name === adminHost?.toLowerCase() || isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
}

function named(adminHost: string | undefined): string {
  return adminHost === undefined || adminHost === "localhost" || isIP(adminHost) !== 0 ? "" : ` or ${adminHost}`;
}

/** Browsers say so themselves, and no script can keep them from it. */
function isFromPage({ origin, "sec-fetch-site": site }: IncomingHttpHeaders): boolean {
  return origin !== undefined || site === "cross-site" || site === "same-site";
}

function hasBody({ "content-length": length, "transfer-encoding": coding }: IncomingHttpHeaders): boolean {
  return coding !== undefined || (length !== undefined && length !== "0");
}

const JSON_TYPE = /^application\/json\s*(;|$)/i;
